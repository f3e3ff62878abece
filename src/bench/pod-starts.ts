/** Start latency of concurrent pods, the runtime's part of it, and the CPU time of both. */
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { AgentProcess } from "../acceptance/cluster/agent-process.ts";
import { makeContainerConfig } from "../agent/pods/containers/container-config.ts";
import { makeSandboxConfig } from "../agent/pods/sandbox/sandbox-config.ts";
import type { ContainerConfig } from "../agent/runtime/cri/container.ts";
import type { PodSandboxConfig } from "../agent/runtime/cri/sandbox.ts";
import { type CriClient, createCriClient } from "../agent/runtime/cri-client.ts";
import { systemClock } from "../std/time/clock.ts";
import type { PrivateContainerd } from "../testing/agent/private-containerd.ts";
import { until } from "../testing/std/until.ts";
import type { Figures } from "./figures.ts";
import { type Connection, expectStatus, quantile } from "./load.ts";
import { type CpuGroup, cpuMs } from "./process.ts";

export const PODS = "/api/v1/namespaces/default/pods";

/** Rounds are repeated until there are so many samples. */
const SAMPLES_MIN = 20;
const WAIT_MS_MAX = 600_000;

export interface BenchSetup {
  readonly figures: Figures;
  readonly containerd: PrivateContainerd;
  readonly node: AgentProcess;
  readonly connection: Connection;
  /** Control groups of all processes of the runtime. */
  readonly runtime: readonly CpuGroup[];
}

/** From the create request of each pod until a watch reports phase Running. */
export async function measureStarts(setup: BenchSetup, count: number): Promise<void> {
  const { connection } = setup;
  using cri = connect(setup);
  const starts = new Starts(setup);
  for (let round = 0; starts.count < Math.max(count, SAMPLES_MIN); round++) {
    using seen = await watchPhases(connection);
    const names = Array.from({ length: count }, (_, index) => `start-${count}-${round}-${index}`);
    await starts.time(names, async (name) => {
      const runs = seen.running(name);
      expectStatus(await connection.request("POST", PODS, pod(name)), 201);
      await runs;
    });
    const gone = names.map((name) => seen.gone(name));
    for (const name of names) await connection.request("DELETE", `${PODS}/${name}`);
    await Promise.all(gone);
    // The runtime removes sandboxes after the pod is deleted; that must not overlap the next round.
    await until("removed sandboxes", async () => {
      const { items = [] } = await cri.runtime.listPodSandbox({});
      return items.length === 0 ? true : undefined;
    });
  }
  starts.report(`pod created to Running, ${count} at once`);
}

/** The CRI calls that the agent makes for such a pod, without the agent. */
export async function measureRuntime(setup: BenchSetup, count: number): Promise<void> {
  using cri = connect(setup);
  const starts = new Starts(setup);
  for (let round = 0; starts.count < Math.max(count, SAMPLES_MIN); round++) {
    const names = Array.from({ length: count }, (_, index) => `direct-${count}-${round}-${index}`);
    const sandboxes: string[] = [];
    await starts.time(names, async (name) => {
      sandboxes.push(await startDirectly(cri, setup, name));
    });
    await Promise.all(
      sandboxes.map(async (podSandboxId) => {
        await cri.runtime.stopPodSandbox({ podSandboxId });
        await cri.runtime.removePodSandbox({ podSandboxId });
      }),
    );
  }
  starts.report(`the runtime's share of it, ${count} at once`);
}

function connect({ containerd: { endpoint } }: BenchSetup): CriClient {
  return createCriClient({ endpoint, requestTimeoutMs: WAIT_MS_MAX, clock: systemClock });
}

/** A pod of one container, bound to the node. */
export function pod(name: string) {
  const container = {
    name: "c",
    image: "localhost/bb:1",
    imagePullPolicy: "Never",
    command: ["sleep", "3600"],
  } as const;
  const spec = {
    nodeName: "n1",
    terminationGracePeriodSeconds: 0,
    automountServiceAccountToken: false,
    containers: [container],
  } as const;
  return { apiVersion: "v1", kind: "Pod", metadata: { name }, spec } as const;
}

/** Start latencies, and the CPU time of runtime, agent and server. */
class Starts {
  readonly #setup: BenchSetup;
  readonly #times: number[] = [];
  readonly #spent = { runtime: 0, agent: 0, server: 0 };

  constructor(setup: BenchSetup) {
    this.#setup = setup;
  }

  get count(): number {
    return this.#times.length;
  }

  /** Starts all of them concurrently. */
  async time(names: readonly string[], start: (name: string) => Promise<void>): Promise<void> {
    const before = this.#cpu();
    const began = performance.now();
    await Promise.all(
      names.map(async (name) => {
        await start(name);
        this.#times.push(performance.now() - began);
      }),
    );
    const after = this.#cpu();
    for (const component of ["runtime", "agent", "server"] as const)
      this.#spent[component] += after[component] - before[component];
  }

  report(what: string): void {
    const times = this.#times;
    const { runtime, agent, server } = this.#spent;
    this.#setup.figures.addAll(what, {
      "ms p50": quantile(times, 0.5),
      "ms p99": quantile(times, 0.99),
      "ms CPU each of the runtime": runtime / times.length,
      "of the agent": agent / times.length,
      "of the server": server / times.length,
    });
  }

  #cpu(): { readonly runtime: number; readonly agent: number; readonly server: number } {
    const { runtime, node } = this.#setup;
    return {
      runtime: runtime.reduce((sum, group) => sum + group.cpuMs, 0),
      agent: cpuMs(node.pid),
      server: cpuMs(node.serverPid),
    };
  }
}

interface PhaseWatch extends Disposable {
  running(name: string): Promise<void>;
  gone(name: string): Promise<void>;
}

async function watchPhases(connection: Connection): Promise<PhaseWatch> {
  const list = JSON.parse((await connection.request("GET", `${PODS}?limit=1`)).body);
  const waiting = new Map<string, () => void>();
  let rest = "";
  let closed = false;
  const onData = (chunk: Buffer): void => {
    if (closed) return;
    const lines = (rest + chunk.toString("utf8")).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const { type, object } = JSON.parse(line);
      const what = type === "DELETED" ? "gone" : object.status?.phase === "Running" ? "running" : "";
      waiting.get(`${what} ${object.metadata.name}`)?.();
    }
  };
  const path = `${PODS}?watch=true&timeoutSeconds=300&resourceVersion=${list.metadata.resourceVersion}`;
  void connection.request("GET", path, undefined, { onData }).catch(() => undefined);
  const wait = (what: string): Promise<void> => new Promise((resolve) => void waiting.set(what, resolve));
  return {
    running: (name) => wait(`running ${name}`),
    gone: (name) => wait(`gone ${name}`),
    [Symbol.dispose]() {
      closed = true;
    },
  };
}

async function startDirectly({ runtime }: CriClient, setup: BenchSetup, name: string): Promise<string> {
  const { config, container } = makeConfigs(setup, name);
  const { podSandboxId = "" } = await runtime.runPodSandbox({ config });
  const { containerId = "" } = await runtime.createContainer({
    podSandboxId,
    sandboxConfig: config,
    config: container,
  });
  await runtime.startContainer({ containerId });
  return podSandboxId;
}

/** Configurations as the agent makes them, without its labels, so that the agent ignores these containers. */
function makeConfigs(
  { containerd, node }: BenchSetup,
  name: string,
): { config: PodSandboxConfig; container: ContainerConfig } {
  const directory = join(containerd.directory, "direct", name);
  const directories = { rootDir: directory, podLogsDir: directory };
  const files = ["/etc/hosts", "/dev/termination-log"].map((containerPath) => {
    const hostPath = join(directory, basename(containerPath));
    return { containerPath, hostPath };
  });
  const settings = { cgroupDriver: "cgroupfs", cgroupRoot: node.cgroup, cgroupsPerQos: true } as const;
  const target = { ...pod(name), metadata: { name, namespace: "default", uid: name } };
  const sandbox = makeSandboxConfig({
    pod: target,
    attempt: 0,
    dns: { servers: [], searches: [], options: [] },
    clusterDomain: "cluster.local",
    directories,
    cgroups: settings,
  });
  const container = makeContainerConfig({
    pod: target,
    container: target.spec.containers[0],
    restartCount: 0,
    imageRef: containerd.image,
    image: undefined,
    environment: new Map(),
    mounts: files,
    cpu: { cpuCfsQuota: true, cpuCfsQuotaPeriodMs: 100 },
    memoryCapacityBytes: 2 ** 30,
    seccompDefault: false,
    rootDir: directory,
  });
  mkdirSync(join(sandbox.logDirectory ?? directory, dirname(container.logPath ?? "")), { recursive: true });
  for (const { hostPath } of files) writeFileSync(hostPath, "");
  return { config: { ...sandbox, labels: {} }, container: { ...container, labels: {} } };
}
