import { readdir, readFile } from "node:fs/promises";
import { get } from "node:https";
import { join } from "node:path";
import t from "tap";
import { startAgent } from "../../agent/agent.ts";
import { CgroupTree } from "../../agent/cgroups/cgroup-tree.ts";
import { ImageManager } from "../../agent/images/image-manager.ts";
import type { PodServices } from "../../agent/pods/pod-context.ts";
import { PodManager } from "../../agent/pods/pod-manager.ts";
import { findPodCgroups, PodCgroups } from "../../agent/pods/resources/pod-cgroups.ts";
import { UserNamespaces } from "../../agent/pods/sandbox/user-namespaces.ts";
import { ProbeManager } from "../../agent/probes/probe-manager.ts";
import { type CriClient, createCriClient } from "../../agent/runtime/cri-client.ts";
import { Relister } from "../../agent/runtime/relister.ts";
import { systemMounter } from "../../agent/volumes/mount/mounter.ts";
import { TokenManager } from "../../agent/volumes/projected/token-manager.ts";
import { VolumeManager } from "../../agent/volumes/volume-manager.ts";
import type { Container } from "../../api/core/container/schema.ts";
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { FakeApi } from "../../testing/agent/fake-api.ts";
import { type Harness, podHarness } from "../../testing/agent/pod-harness.ts";
import {
  createAgentConfig,
  findMissing,
  type PrivateContainerd,
  startPrivateContainerd,
} from "../../testing/agent/private-containerd.ts";
import { runtimeConformance } from "../../testing/agent/runtime-conformance.ts";
import { until } from "../../testing/std/until.ts";

const missing = await findMissing();

/** A pod manager over containerd, in real time. */
interface ContainerdHarness extends AsyncDisposable {
  readonly pods: PodManager;
  readonly statuses: Map<string, PodStatus>;
  readonly events: Harness["events"];
  readonly finished: string[];
  until(what: string, holds: () => boolean): Promise<void>;
}

async function startHarness(at: Harness, containerd: PrivateContainerd, cri: CriClient): Promise<ContainerdHarness> {
  const stop = new AbortController();
  const statuses = new Map<string, PodStatus>();
  const finished: string[] = [];
  const { directories } = at.services.settings;
  const { runtime, images } = cri;
  const { events } = at.services;
  const clock = systemClock;
  const bytes = async (key: string) => {
    const found = at.objects.get(key);
    return found && Object.fromEntries(Object.entries(found).map(([name, value]) => [name, Buffer.from(value)]));
  };
  const services: PodServices = {
    ...at.services,
    settings: {
      ...at.services.settings,
      directories: { ...directories, podLogsDir: join(containerd.directory, "logs") },
    },
    clock,
    runtime,
    images: new ImageManager({
      images,
      clock,
      events,
      getSecret: async () => undefined,
      serialize: true,
      qps: 0,
      burst: 0,
    }),
    volumes: new VolumeManager({
      directories,
      mounter: systemMounter,
      clock,
      objects: {
        configMap: (namespace, name) => bytes(`configMap/${namespace}/${name}`),
        secret: (namespace, name) => bytes(`secret/${namespace}/${name}`),
      },
      node: at.services.node,
      tokens: new TokenManager({ source: { requestToken: async (_namespace, _account, request) => request }, clock }),
      claims: { claim: async () => undefined, persistentVolume: async () => undefined },
      events,
    }),
    mounter: systemMounter,
    cgroups: new PodCgroups({
      tree: new CgroupTree("/sys/fs/cgroup"),
      settings: { ...at.services.settings.cgroups, ...at.services.settings.cpu, podMaxPids: -1 },
      pods: () => pods.active,
    }),
    probes: new ProbeManager({
      runtime,
      clock,
      events,
      userAgent: "test",
      onChange: (uid) => pods.onRuntimeChange(uid),
    }),
    expectChange: () => relister.requestRelist(),
    onFinished: (pod) => void finished.push(pod.metadata?.name ?? ""),
  };
  const pods: PodManager = new PodManager({
    services,
    onStatus: (pod, status) => statuses.set(pod.metadata?.name ?? "", status),
    onRemoved: () => undefined,
  });
  const relister: Relister = new Relister({
    runtime,
    clock,
    log: at.services.log,
    onChange: (uid, digest, askedAt) => pods.compareListing(uid, digest, askedAt),
    signal: stop.signal,
  });
  const running = relister.run();
  return {
    pods,
    statuses,
    events: at.events,
    finished,
    async until(what, holds) {
      await until(() => `${what}; ${JSON.stringify([...statuses])} ${JSON.stringify(at.events)}`, holds);
    },
    async [Symbol.asyncDispose]() {
      await pods.close({ stopPods: false, graceSeconds: 0 });
      stop.abort();
      await running;
    },
  };
}

function shell(name: string, script: string, extra: Partial<Container> = {}): Container {
  return { name, image: "localhost/bb:1", imagePullPolicy: "Never", command: ["sh", "-c", script], ...extra };
}

function pod(name: string, spec: PodSpec): Pod {
  return { metadata: { name, namespace: "default", uid: `uid-${name}` }, spec };
}

const forever = "trap 'exit 0' TERM; while :; do sleep 0.1; done";

if (missing.length > 0) {
  console.log(`# a real containerd cannot run here (missing: ${missing.join(", ")}): skipped`);
} else {
  await using containerd = await startPrivateContainerd();
  using cri = createCriClient({ endpoint: containerd.endpoint, requestTimeoutMs: 60_000, clock: systemClock });
  const logs = join(containerd.directory, "logs");
  const log = async (name: string, container: string, run = 0): Promise<readonly string[]> => {
    const text = await readFile(join(logs, `default_${name}_uid-${name}`, container, `${run}.log`), "utf8");
    return text
      .trimEnd()
      .split("\n")
      .map((line) => line.split(" ").slice(3).join(" "));
  };

  await t.test("createCriClient() conforms to Runtime over containerd", async (t) => {
    await runtimeConformance(t, {
      runtime: cri.runtime,
      images: cri.images,
      image: containerd.image,
      sleeper: { name: "sleeper", command: ["sh", "-c", forever] },
      failing: { name: "failing", command: ["sh", "-c", "echo failing; exit 3"] },
      logDirectory: join(containerd.directory, "conformance"),
      advance: (milliseconds) => systemClock.sleep(milliseconds),
    });
  });

  await t.test("createCriClient().events() streams changes of containers of containerd", async (t) => {
    const stop = new AbortController();
    let count = 0;
    const stream = cri.events(() => count++, stop.signal);
    const failed = t.rejects(stream, { message: "over" });
    const metadata = { name: "events", uid: "events", namespace: "default", attempt: 0 };
    const { podSandboxId } = await until("a sandbox whose start is announced", async () => {
      const found = await cri.runtime.runPodSandbox({ config: { metadata, logDirectory: logs } });
      if (count > 0) return found;
      await cri.runtime.stopPodSandbox(found);
      await cri.runtime.removePodSandbox(found);
      return undefined;
    });
    const before = count;
    await cri.runtime.stopPodSandbox({ podSandboxId });
    await until("the event of its end", () => count > before);
    await cri.runtime.removePodSandbox({ podSandboxId });
    stop.abort(new Error("over"));
    await failed;
  });

  await t.test("PodWorker runs a pod in containerd: volumes, environment, init, logs, deletion", async (t) => {
    await using at = await podHarness();
    await using node = await startHarness(at, containerd, cri);
    at.objects.set("configMap/default/settings", { greeting: "hello\n", other: "x" });
    at.objects.set("secret/default/keys", { token: "s3cret" });
    const script = [
      "cat /from/init",
      "cat /conf/greeting",
      "echo $TOKEN $NAME $GREETING",
      "cat /sub/deep",
      "mount | while read d _ p _ k _; do [ $p = /mem ] && echo $k; done",
      "id",
      "echo words > /dev/termination-log",
      forever,
    ].join("; ");
    const wanted = pod("whole", {
      terminationGracePeriodSeconds: 5,
      securityContext: { fsGroup: 2000 },
      volumes: [
        { name: "share", emptyDir: {} },
        { name: "mem", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
        { name: "conf", configMap: { name: "settings" } },
      ],
      initContainers: [
        shell("init", "echo made > /from/init; echo deep > /from/deep", {
          volumeMounts: [{ name: "share", mountPath: "/from" }],
        }),
      ],
      containers: [
        shell("c", script, {
          env: [
            { name: "TOKEN", valueFrom: { secretKeyRef: { name: "keys", key: "token" } } },
            { name: "NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
            { name: "GREETING", value: "$(NAME)!" },
          ],
          resources: { requests: { cpu: "100m" }, limits: { memory: "32Mi" } },
          volumeMounts: [
            { name: "share", mountPath: "/from" },
            { name: "share", mountPath: "/sub/deep", subPath: "deep" },
            { name: "mem", mountPath: "/mem" },
            { name: "conf", mountPath: "/conf" },
          ],
          readinessProbe: { exec: { command: ["cat", "/conf/greeting"] }, periodSeconds: 1 },
        }),
      ],
    });
    node.pods.put(wanted);
    const ready = (): boolean => node.statuses.get("whole")?.containerStatuses?.[0]?.ready === true;
    await node.until("the pod is ready", ready);
    const status = node.statuses.get("whole");
    t.equal(status?.phase, "Running");
    t.match(status?.podIP, /^10\./);
    t.match(status?.containerStatuses?.[0], { image: "localhost/bb:1", containerID: /^fake:\/\/[0-9a-f]{64}$/ });
    t.same(await log("whole", "c"), [
      "made",
      "hello",
      "s3cret whole whole!",
      "deep",
      "tmpfs",
      "uid=0(root) gid=0 groups=0,2000",
    ]);
    t.ok((await findPodCgroups("uid-whole", "")).length > 0, "the pod has its cgroup");
    const deletion = { deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 5 };
    node.pods.put({ ...wanted, metadata: { ...wanted.metadata, ...deletion } });
    await node.until("the pod has stopped", () => node.finished.includes("whole"));
    t.match(node.statuses.get("whole")?.containerStatuses?.[0]?.state, {
      terminated: { exitCode: 0, reason: "Completed", message: "words\n" },
    });
    t.same(await systemMounter.listMountPoints(at.rootDir), [], "nothing stays mounted");
    node.pods.delete("uid-whole");
    await node.until("the worker has ended", () => node.pods.worker("uid-whole") === undefined);
    t.same(await readdir(logs), []);
    t.same(await findPodCgroups("uid-whole", ""), [], "its cgroups are removed");
  });

  await t.test("PodWorker runs a pod in a user namespace, or reports that the runtime lacks them", async (t) => {
    await using at = await podHarness();
    const { directories } = at.services.settings;
    const range = async () => ({ first: 65_536, length: 65_536 });
    const userNamespaces = new UserNamespaces({ directories, idsPerPod: 65_536, readRange: range });
    Object.assign(at.services, { userNamespaces });
    await using node = await startHarness(at, containerd, cri);
    const { runtimeHandlers = [] } = await cri.runtime.status({});
    const script = `cat /proc/self/uid_map; ${forever}`;
    node.pods.put(pod("mapped", { hostUsers: false, containers: [shell("c", script)] }));
    if (runtimeHandlers.some(({ name = "", features }) => name === "" && features?.userNamespaces === true)) {
      await node.until("the pod runs", () => node.statuses.get("mapped")?.phase === "Running");
      t.match(await log("mapped", "c"), [/^0 +65536 +65536$/]);
    } else {
      const text =
        "Failed to create pod sandbox: can't set `spec.hostUsers: false`, runtime does not support user namespaces";
      await node.until("the event", () => node.events.some(({ message }) => message.startsWith(text)));
      t.equal(node.statuses.get("mapped")?.phase, "Pending");
    }
    await node.pods.close({ stopPods: true, graceSeconds: 0 });
  });

  await t.test("PodWorker restarts a failed container, and a new agent adopts it with its restart count", async (t) => {
    await using at = await podHarness();
    const script = `[ -e /d/ran ] || { touch /d/ran 2>/dev/null || echo > /d/ran; exit 7; }; ${forever}`;
    const wanted = pod("again", {
      terminationGracePeriodSeconds: 1,
      volumes: [{ name: "d", emptyDir: {} }],
      containers: [shell("c", script, { volumeMounts: [{ name: "d", mountPath: "/d" }] })],
    });
    const count = (node: ContainerdHarness) => node.statuses.get("again")?.containerStatuses?.[0]?.restartCount;
    const isReady = (node: ContainerdHarness) => node.statuses.get("again")?.containerStatuses?.[0]?.ready === true;
    let before: string | undefined;
    {
      await using node = await startHarness(at, containerd, cri);
      node.pods.put(wanted);
      await node.until("the second run is up", () => count(node) === 1 && isReady(node));
      before = node.statuses.get("again")?.containerStatuses?.[0]?.containerID;
    }
    await using node = await startHarness(at, containerd, cri);
    node.pods.put(wanted);
    await node.until("the pod is adopted", () => isReady(node));
    t.equal(node.statuses.get("again")?.containerStatuses?.[0]?.containerID, before, "the same container");
    t.equal(count(node), 1);
    t.match(node.statuses.get("again")?.containerStatuses?.[0]?.lastState, { terminated: { exitCode: 7 } });
    node.pods.delete("uid-again");
    await node.until("the worker has ended", () => node.pods.worker("uid-again") === undefined);
  });

  await t.test("PodWorker reports the runtime's message for a command that does not exist", async (t) => {
    await using at = await podHarness();
    await using node = await startHarness(at, containerd, cri);
    const container = { ...shell("c", ""), command: ["/no/such"] };
    node.pods.put(pod("nocmd", { restartPolicy: "Never", containers: [container] }));
    await node.until("the pod has failed", () => node.statuses.get("nocmd")?.phase === "Failed");
    const state = node.statuses.get("nocmd")?.containerStatuses?.[0]?.state?.terminated;
    t.match(state, { exitCode: 128, reason: "StartError", message: /no such file or directory/ });
    node.pods.delete("uid-nocmd");
    await node.until("the worker has ended", () => node.pods.worker("uid-nocmd") === undefined);
  });

  await t.test("startAgent() registers its node, runs an assigned pod, serves its log and removes it", async (t) => {
    const directory = join(containerd.directory, "agent");
    const api = new FakeApi();
    const config = createAgentConfig(containerd, directory);
    const agent = await startAgent(config, { clock: systemClock, log: silentLogger, transport: api.transport });
    await agent.ready();
    const node = api.objects.get("/api/v1/nodes/n1");
    t.match(node?.metadata, { labels: { "kubernetes.io/hostname": "n1", "svc.io/hostname": "n1" } });
    t.match(node?.status, {
      nodeInfo: { kubeletVersion: /^v1\.33\./, containerRuntimeVersion: /^containerd:/ },
      daemonEndpoints: { kubeletEndpoint: { Port: agent.address?.port } },
    });
    await until("the lease", () => api.listBelow("/apis/coordination.svc.io/v1").length === 1);

    const path = "/api/v1/namespaces/default/pods/web";
    const spec = {
      nodeName: "n1",
      terminationGracePeriodSeconds: 1,
      containers: [shell("c", `echo hello; ${forever}`)],
    };
    const created = api.put(path, { kind: "Pod", metadata: { name: "web", namespace: "default" }, spec });
    const phase = (): unknown => api.objects.get(path)?.status?.phase;
    await until("the pod runs", () => phase() === "Running");
    const options = { hostname: "127.0.0.1", port: agent.address?.port, rejectUnauthorized: false };
    const answer = await new Promise<string>((resolve, reject) => {
      get({ ...options, path: "/containerLogs/default/web/c?tailLines=1" }, (response) => {
        const chunks: Buffer[] = [];
        response
          .on("data", (chunk: Buffer) => chunks.push(chunk))
          .on("end", () => resolve(`${response.statusCode} ${Buffer.concat(chunks)}`));
      }).on("error", reject);
    });
    t.equal(answer, "200 hello\n");

    const deletion = { deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 1 };
    api.put(path, { ...(api.objects.get(path) ?? created), metadata: { ...created.metadata, ...deletion } });
    await until("the object is deleted", () => !api.objects.has(path));
    const reasons = () =>
      api.listBelow("/api/v1/namespaces/default/events").map((each) => (each as { reason?: string }).reason);
    await until("all events are recorded", () =>
      ["Pulled", "Created", "Started", "Killing"].every((each) => reasons().includes(each)),
    );
    await agent.close();
    t.same(await systemMounter.listMountPoints(directory), []);
  });
}
