/** Kills the agent or containerd at steps of a pod's start and end. */
import { join } from "node:path";
import t from "tap";
import { findPodCgroups } from "../../agent/pods/resources/pod-cgroups.ts";
import { createCriClient } from "../../agent/runtime/cri-client.ts";
import { systemMounter } from "../../agent/volumes/mount/mounter.ts";
import { systemClock } from "../../std/time/clock.ts";
import { type CriMethod, ScriptedCri } from "../../testing/agent/scripted-cri.ts";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement } from "./cluster.ts";
import type { ApiJson } from "./recorded-agent/cases.ts";
import { NODE, ReplayNode } from "./recorded-agent/replay-node.ts";

const missing = findMissingRequirement();
t.setTimeout(300_000);
const path = "/api/v1/namespaces/default/pods";

type When = "before" | "after";
const steps: readonly (readonly [victim: "agent" | "runtime", when: When, method: CriMethod])[] = [
  ["agent", "after", "RunPodSandbox"],
  ["agent", "after", "CreateContainer"],
  ["agent", "before", "StartContainer"],
  ["agent", "after", "StartContainer"],
  ["agent", "after", "StopContainer"],
  ["agent", "after", "StopPodSandbox"],
  ["agent", "before", "RemovePodSandbox"],
  ["runtime", "before", "CreateContainer"],
  ["runtime", "after", "StartContainer"],
  ["runtime", "before", "StopPodSandbox"],
];

interface PodJson extends ApiJson {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly status: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly containerStatuses?: readonly { readonly restartCount: number }[];
  };
}

function podOf(name: string): ApiJson {
  const command = ["sh", "-c", "echo started; trap 'exit 0' TERM; while :; do sleep 0.1; done"];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      nodeName: NODE,
      serviceAccountName: "default",
      terminationGracePeriodSeconds: 2,
      volumes: [{ name: "v", downwardAPI: { items: [{ path: "name", fieldRef: { fieldPath: "metadata.name" } }] } }],
      containers: [
        {
          name: "c",
          image: "localhost/bb:1",
          imagePullPolicy: "Never",
          command,
          volumeMounts: [{ name: "v", mountPath: "/v" }],
        },
      ],
    },
  };
}

async function podNow(machine: ReplayNode, name: string): Promise<PodJson | undefined> {
  const { code, body } = await machine.api.send("GET", `${path}/${name}`);
  return code === 200 ? (body as PodJson) : undefined;
}

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("a pod starts once and ends completely when the agent or containerd is killed at any step", async (t) => {
    await using stack = new AsyncDisposableStack();
    let cri: ScriptedCri | undefined;
    const machine = stack.use(
      await ReplayNode.create("", async ({ directory, endpoint }) => {
        const client = stack.use(createCriClient({ endpoint, requestTimeoutMs: 60_000, clock: systemClock }));
        cri = stack.use(new ScriptedCri(join(directory, "front.sock"), client));
        await cri.start();
        return cri.endpoint;
      }),
    );
    const client = stack.use(
      createCriClient({ endpoint: machine.containerd.endpoint, requestTimeoutMs: 60_000, clock: systemClock }),
    );
    await until("the service account", async () => {
      const { code } = await machine.api.send("GET", "/api/v1/namespaces/default/serviceaccounts/default");
      return code === 200 ? true : undefined;
    });
    for (const [index, [victim, when, method]] of steps.entries()) {
      const name = `pod-${index}`;
      const title = `${victim} killed ${when} ${method}`;
      let recovery: Promise<void> | undefined;
      cri?.on({
        method,
        nth: 1,
        when,
        action: async ({ signal }) => {
          recovery = victim === "agent" ? killAgent(machine) : killRuntime(machine);
          if (victim === "runtime") await recovery;
          else await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
        },
      });
      await machine.api.expect("POST", path, podOf(name));
      await until(`${name} to be ready (${title})`, async () => {
        const conditions = (await podNow(machine, name))?.status.conditions ?? [];
        return conditions.some(({ type, status }) => type === "Ready" && status === "True") || undefined;
      });
      const pod = await podNow(machine, name);
      t.equal(pod?.status.containerStatuses?.[0]?.restartCount, 0, title);
      await machine.api.expect("DELETE", `${path}/${name}`);
      await until(`${name} to be gone (${title})`, async () => ((await podNow(machine, name)) ? undefined : true));
      await until(`no remains (${title})`, async () => {
        if (recovery === undefined) return undefined;
        await recovery;
        const { items = [] } = await client.runtime.listPodSandbox({});
        const { containers = [] } = await client.runtime.listContainers({});
        const mounts = await systemMounter.listMountPoints(join(machine.rootDir, "pods"));
        const cgroups = await findPodCgroups(pod?.metadata.uid ?? "", "");
        return items.length + containers.length + mounts.length + cgroups.length === 0 ? true : undefined;
      });
    }
  });
}

async function killAgent(machine: ReplayNode): Promise<void> {
  await machine.killAgent("SIGKILL");
  await machine.startAgent();
}

async function killRuntime({ containerd }: ReplayNode): Promise<void> {
  await containerd.kill();
  await containerd.start();
}
