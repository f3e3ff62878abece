/**
 * The agent process is killed at each step of an allocation of CPUs, memory, devices and a claim, and of their
 * release: after its restart nothing is lost, and nothing is allocated twice.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { basename, join } from "node:path";
import t, { type Test } from "tap";
import { startFakeClaimDriver } from "../../testing/agent/fake-claim-driver.ts";
import { makeDevices, startFakeDevicePlugin } from "../../testing/agent/fake-device-plugin.ts";
import { KilledAgent } from "../../testing/agent/killed-agent.ts";
import { until } from "../../testing/std/until.ts";
import { programs } from "../cluster/cluster.ts";

const GPU = "example.com/gpu";
const DRIVER = "gpu.example.com";
const CLAIM = "/apis/resource.svc.io/v1beta1/namespaces/default/resourceclaims/claim";
const flags = [
  "--cpu-manager-policy=static",
  "--cpu-manager-reconcile-period=1s",
  "--memory-manager-policy=Static",
  "--topology-manager-policy=best-effort",
  "--system-reserved=cpu=500m,memory=100Mi",
  "--eviction-hard=memory.available<100Mi",
  "--reserved-memory=0:memory=200Mi",
  "--feature-gates=DynamicResourceAllocation=true",
  "--v=2",
];
const NODE_MEMORY = "/sys/devices/system/node/node0/meminfo";
const skip = process.getuid?.() !== 0 ? "needs root" : !existsSync(NODE_MEMORY) && "needs NUMA node 0";

/** Which part of a pod's life has the steps. */
type Part = "start" | "start with a device" | "end";

for (const part of ["start", "start with a device", "end"] as const) {
  t.test(`the ${part} of a pod with resources of its own`, { skip, timeout: 900_000 }, async (t) => {
    const steps = await allocateOnce(t, part, Number.POSITIVE_INFINITY);
    const wanted = {
      start: ["cpu_manager_state", "memory_manager_state", "Prepare", "dra_manager_state"],
      "start with a device": ["kubelet_internal_checkpoint", "Allocate"],
      end: ["Unprepare", "dra_manager_state", "StopContainer", "DELETE /api/v1/namespaces/default/pods/pinned"],
    };
    for (const each of wanted[part]) {
      t.ok(
        steps.some((step) => step.includes(each)),
        each,
      );
    }
    for (const index of steps.keys()) await allocateOnce(t, part, index);
  });
}

/**
 * The memory of a virtual machine may grow at any time. An agent with the static policy does not start then, as in
 * Kubernetes, so that the case is repeated.
 */
async function allocateOnce(t: Test, part: Part, killAt: number): Promise<readonly string[]> {
  for (;;) {
    const before = readFileSync(NODE_MEMORY, "utf8");
    const isSame = (): boolean => totalOf(before) === totalOf(readFileSync(NODE_MEMORY, "utf8"));
    try {
      return await allocate(t, part, killAt);
    } catch (error) {
      if (isSame()) throw error;
    }
  }
}

function totalOf(memory: string): string | undefined {
  return /MemTotal:\s+(\d+)/.exec(memory)?.[1];
}

async function allocate(t: Test, part: Part, killAt: number): Promise<readonly string[]> {
  await using stack = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "svc-kill-"));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const cgroup = `/${basename(directory)}`;
  const agent = stack.use(await KilledAgent.create({ directory, cgroup, program: programs.bundle, flags }));
  const { rootDir } = agent;
  const plugins = join(rootDir, "device-plugins");
  mkdirSync(plugins, { recursive: true });
  const devices = [{ requestNames: ["gpu"], poolName: "n1", deviceName: "d0", cdiDeviceIds: [`${DRIVER}/gpu=d0`] }];
  const driver = stack.use(
    await startFakeClaimDriver({
      name: DRIVER,
      rootDir,
      prepare: ({ name = "" }) => agent.step(`Prepare ${name}`, async () => devices),
      unprepare: ({ name = "" }) => agent.step(`Unprepare ${name}`, async () => undefined),
    }),
  );
  /** Plugins register again when the agent has restarted. */
  const start = async (): Promise<void> => {
    rmSync(join(plugins, "kubelet.sock"), { force: true });
    const before = driver.calls.length;
    await agent.start();
    await agent.until("the socket for plugins", () => existsSync(join(plugins, "kubelet.sock")));
    const plugin = stack.use(
      await startFakeDevicePlugin({
        directory: plugins,
        resource: GPU,
        devices: makeDevices("g", 1),
        onAllocate: (ids) => agent.step(`Allocate ${ids.join(",")}`, async () => undefined),
      }),
    );
    const register = (): Promise<boolean> =>
      plugin.register().then(
        () => true,
        () => false,
      );
    await until("the plugin is registered", register);
    await agent.until("the driver is registered", () => driver.calls.slice(before).includes("registered"));
    await agent.until("the node has the device", () => agent.getAllocatable()[GPU] === "1");
  };
  await start();
  const arm = (): void => {
    agent.killAt(killAt);
    agent.watchFiles(rootDir);
    agent.watchFiles(plugins);
  };
  const hasDevice = part !== "start";
  if (part !== "end") arm();
  putPod(agent, "pinned", hasDevice);
  const isDecided = (name: string): boolean => ["Running", "Failed"].includes(agent.statusOf(name).phase ?? "");
  const isGone = (name: string): boolean => !agent.exists(name);
  if (part === "end") {
    await agent.until("the pod runs", () => isDecided("pinned"));
    arm();
    agent.deletePod("pinned");
  }
  const hasReached = (): boolean => (part === "end" ? isGone("pinned") : isDecided("pinned"));
  if (Number.isFinite(killAt)) {
    await agent.ended();
    agent.disarm();
    await start();
  }
  await agent.until("the pod has reached its state", hasReached);
  const { steps } = agent;
  agent.disarm();
  const title = Number.isFinite(killAt) ? `killed ${steps.at(-1)}` : "not killed";
  if (part !== "end") {
    const { phase, reason, message } = agent.statusOf("pinned");
    // As in Kubernetes: no container of it ran, and the plugin has not registered again yet.
    if (hasDevice && phase === "Failed") {
      t.equal(reason, "UnexpectedAdmissionError", title);
      t.match(message, /^Pod was rejected: Allocate failed due to .*example.com\/gpu, which is unexpected/);
    } else checkPod(t, agent, "pinned", title, hasDevice);
    agent.deletePod("pinned");
    await agent.until("the pod is gone", () => isGone("pinned"));
  }
  await agent.until("its claim is released", () => readClaims(rootDir).length === 0);
  const counts = (call: string): number => driver.calls.filter((each) => each === call).length;
  t.ok(counts("unprepare claim") >= Math.min(1, counts("prepare claim")), `${title}: the claim is released`);
  t.equal(agent.countRunning("pinned"), 0, `${title}: no container is left`);
  putPod(agent, "next", true);
  await agent.until("the next pod is decided", () => isDecided("next"));
  checkPod(t, agent, "next", title, true);
  t.same(listIncomplete(rootDir), [], `${title}: no file that was not completed`);
  return steps;
}

function putPod(agent: KilledAgent, name: string, hasDevice: boolean): void {
  const results = [{ request: "gpu", driver: DRIVER, pool: "n1", device: "d0" }];
  agent.api.put(CLAIM, {
    kind: "ResourceClaim",
    metadata: { name: "claim", namespace: "default", uid: `claim-of-${name}` },
    spec: { devices: { requests: [{ name: "gpu", deviceClassName: "gpu" }] } },
    status: { allocation: { devices: { results } }, reservedFor: [{ resource: "pods", name, uid: `uid-${name}` }] },
  });
  const list = { cpu: "1", memory: "64Mi", ...(hasDevice ? { [GPU]: "1" } : {}) };
  const resources = { limits: list, requests: list, claims: [{ name: "gpu" }] };
  agent.createPod(name, {
    containers: [{ name, image: "busybox:1", imagePullPolicy: "IfNotPresent", resources }],
    resourceClaims: [{ name: "gpu", resourceClaimName: "claim" }],
  });
}

/** The pod runs once, and all files have what its container got. */
function checkPod(t: Test, agent: KilledAgent, name: string, title: string, hasDevice: boolean): void {
  const uid = `uid-${name}`;
  const { phase, reason, message } = agent.statusOf(name);
  t.equal(`${phase} ${reason} ${message}`, "Running undefined undefined", `${title}: ${name} runs`);
  t.equal(agent.countRunning(name), 1, `${title}: ${name} has one container`);
  const created = agent.fake.calls.filter(({ method }) => method === "createContainer").map(({ request }) => request);
  const last = created.findLast((each) => JSON.stringify(each, hideBytes).includes(uid));
  const cpus = availableParallelism() === 2 ? "1" : /^\d+$/;
  const linux = { resources: { cpusetCpus: cpus, cpusetMems: "0" } };
  const CDIDevices = [{ name: `${DRIVER}/gpu=d0` }];
  t.match(last, { config: { linux, CDIDevices } }, `${title}: what ${name} got`);
  const cpu = readState(agent.rootDir, "cpu_manager_state");
  t.match(cpu.entries, { [uid]: { [name]: cpus } }, title);
  t.same(Object.keys(cpu.entries ?? {}), [uid], `${title}: CPUs of no other pod`);
  const memory = readState(agent.rootDir, "memory_manager_state");
  t.same(Object.keys(memory.entries ?? {}), [uid], `${title}: memory of no other pod`);
  t.match(memory.machineState, { 0: { numberOfAssignments: 1, memoryMap: { memory: { reserved: 64 * 2 ** 20 } } } });
  const { Data: data } = readState(agent.rootDir, "device-plugins/kubelet_internal_checkpoint");
  const expected = hasDevice ? [{ PodUID: uid, DeviceIDs: { "-1": ["g0"] } }] : null;
  t.match(data, { PodDeviceEntries: expected }, `${title}: one device`);
  t.match(readClaims(agent.rootDir), [{ ClaimName: "claim", PodUIDs: { [uid]: {} } }], `${title}: the claim`);
}

type State = Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;

function readState(rootDir: string, name: string): State {
  return JSON.parse(readFileSync(join(rootDir, name), "utf8")) as State;
}

function readClaims(rootDir: string): readonly unknown[] {
  if (!existsSync(join(rootDir, "dra_manager_state"))) return [];
  const { Data: data } = readState(rootDir, "dra_manager_state");
  return (JSON.parse(String(data)) as { readonly ClaimInfoStateList: readonly unknown[] }).ClaimInfoStateList;
}

function listIncomplete(rootDir: string): readonly string[] {
  const all = [rootDir, join(rootDir, "device-plugins")].flatMap((each) => readdirSync(each));
  return all.filter((name) => name.endsWith(".tmp"));
}

/** Numbers of 64 bits have no JSON. */
function hideBytes(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}
