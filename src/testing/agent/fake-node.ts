/**
 * A node whose agent, runtime and API server can each be killed and restarted. The agent runs in this process and calls
 * the runtime over gRPC; a killed agent has no connections any more, and leaves its files and mounts.
 */
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunningAgent, startAgent } from "../../agent/agent.ts";
import type { AgentConfig } from "../../agent/agent-config.ts";
import { defaultAgentConfig } from "../../agent/options.ts";
import type { Container as RuntimeContainer } from "../../agent/runtime/cri/container.ts";
import type { PodSandbox } from "../../agent/runtime/cri/sandbox.ts";
import { labels } from "../../agent/runtime/observation.ts";
import type { ImageService, Runtime } from "../../agent/runtime/runtime.ts";
import { systemMounter } from "../../agent/volumes/mount/mounter.ts";
import type { Container } from "../../api/core/container/schema.ts";
import type { PodStatus } from "../../api/core/pod/schema.ts";
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import type { HttpResponse } from "../../http/message.ts";
import { isStreamed } from "../../http/server/write-body.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { type Clock, sleepOn, systemClock, type Timer } from "../../std/time/clock.ts";
import { until } from "../std/until.ts";
import { FakeApi } from "./fake-api.ts";
import { FakeRuntime, type Program } from "./fake-runtime.ts";
import { type CriBackend, type Fault, ScriptedCri } from "./scripted-cri.ts";

/** A clock that runs `speed` times as fast as the host's, and can be set. */
export class WarpedClock implements Clock {
  readonly #speed: number;
  #offset: number;

  constructor(speed: number) {
    this.#speed = speed;
    this.#offset = systemClock.now() - this.monotonic();
  }

  now(): number {
    return this.monotonic() + this.#offset;
  }

  monotonic(): number {
    return systemClock.monotonic() * this.#speed;
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, milliseconds, signal);
  }

  timer(milliseconds: number, callback: () => void): Timer {
    return systemClock.timer(milliseconds / this.#speed, callback);
  }

  /** Sets the time of day; the monotonic clock is not affected. */
  set(now: number): void {
    this.#offset = now - this.monotonic();
  }
}

/** The runtime of a node. */
export interface NodeRuntime extends AsyncDisposable {
  readonly runtime: Runtime;
  readonly images: ImageService;
  readonly clock: Clock;
  readonly cgroupHierarchy: string;
  /** A container that runs `program`, and `then` from its second run on. */
  container(name: string, program: Program, then?: Program): Container;
}

/** A NodeRuntime with the fake runtime, on a fast clock. */
export function fakeNodeRuntime(clock: Clock = new WarpedClock(SPEED)): NodeRuntime & { readonly fake: FakeRuntime } {
  const fake = new FakeRuntime(clock);
  fake.execs.set("false", { exitCode: 1 });
  return {
    fake,
    runtime: fake.runtime,
    images: fake.images,
    clock,
    cgroupHierarchy: "/nonexistent",
    container(name, program, then = program) {
      fake.programs.set(name, (attempt) => (attempt === 0 ? program : then));
      return { name, image: "busybox:1", imagePullPolicy: "IfNotPresent" };
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/** Factor by which the clock is faster than the host's. */
const SPEED = 6;
/** Timeout of conditions, on the host's clock. */
const TIMEOUT_MS = 20_000;

export interface StoredPod {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly spec?: PodSpec;
  readonly status?: PodStatus;
}

export class FakeNode implements AsyncDisposable {
  readonly api = new FakeApi();
  readonly directory: string;
  /** Two runs of one container at the same time. */
  readonly violations: string[] = [];
  readonly #runtime: NodeRuntime;
  readonly #configure: (config: AgentConfig) => AgentConfig;
  readonly #faults: Fault[] = [];
  readonly #closing: Promise<unknown>[] = [];
  readonly #recoveries: Promise<unknown>[] = [];
  /** How often each container was started, by name. */
  readonly startCounts = new Map<string, number>();
  /** UIDs of all pods that had a sandbox on this node. */
  readonly #uids = new Set<string>();
  #agents = 0;
  #cri: ScriptedCri | undefined;
  #agent: { readonly running: RunningAgent; die(): void } | undefined;

  private constructor(directory: string, runtime: NodeRuntime, configure: (config: AgentConfig) => AgentConfig) {
    this.directory = directory;
    this.#runtime = runtime;
    this.#configure = configure;
  }

  /** A node without a running agent. The caller disposes the runtime. */
  static async create(
    runtime: NodeRuntime,
    configure: (config: AgentConfig) => AgentConfig = (config) => config,
  ): Promise<FakeNode> {
    return new FakeNode(await mkdtemp(join(tmpdir(), "svc-node-")), runtime, configure);
  }

  get clock(): Clock {
    return this.#runtime.clock;
  }

  get cri(): ScriptedCri {
    if (this.#cri === undefined) throw new Error("No agent was started");
    return this.#cri;
  }

  container(name: string, program: Program, then?: Program): Container {
    return this.#runtime.container(name, program, then);
  }

  /** Each agent has its own socket, so that calls of a killed one fail. */
  async startAgent(): Promise<void> {
    this.#agents += 1;
    const cri = new ScriptedCri(join(this.directory, `cri-${this.#agents}.sock`), this.#createBackend());
    this.#cri = cri;
    for (const fault of this.#faults.splice(0)) cri.on(fault);
    await cri.start();
    const lifetime = new AbortController();
    const base = defaultAgentConfig("n1");
    const config = this.#configure({
      ...base,
      rootDir: join(this.directory, "root"),
      podLogsDir: join(this.directory, "logs"),
      certDir: join(this.directory, "pki"),
      runtime: {
        ...base.runtime,
        endpoint: cri.endpoint,
        imageEndpoint: cri.endpoint,
        requestTimeoutMs: 20_000,
        failSwapOn: false,
        failCgroupV1: false,
      },
      node: { ...base.node, ips: ["192.0.2.1"], evictionHard: {} },
      // A full disk evicts no pod.
      eviction: { ...base.eviction, hard: {} },
      server: { ...base.server, enabled: false, readOnlyPort: 0, healthzPort: 0 },
      pods: { ...base.pods, syncMs: 10_000, localStorageIsolation: false },
    });
    await mkdir(config.rootDir, { recursive: true });
    const running = await startAgent(config, {
      clock: this.#runtime.clock,
      log: silentLogger,
      transport: async (request) => {
        lifetime.signal.throwIfAborted();
        const response = await this.api.transport(request);
        lifetime.signal.throwIfAborted();
        return { ...response, body: abortableBody(lifetime.signal, response.body) };
      },
      cgroupHierarchy: this.#runtime.cgroupHierarchy,
    });
    this.#agent = {
      running,
      die: () => {
        cri.kill();
        lifetime.abort(new Error("the agent was killed"));
      },
    };
  }

  /** Cuts all connections of the agent at once. */
  killAgent(): void {
    const agent = this.#agent;
    this.#agent = undefined;
    if (agent === undefined) return;
    agent.die();
    this.#closing.push(agent.running.close().catch(() => undefined));
  }

  /** Runs a recovery after a while; disposing the node waits for it. */
  recoverAfter(milliseconds: number, recover: () => Promise<void> | void): void {
    this.#recoveries.push(this.clock.sleep(milliseconds).then(recover));
  }

  /** Resolves when all recoveries have run. */
  async untilRestored(): Promise<void> {
    await Promise.all(this.#recoveries);
  }

  /** Adds a fault to the running agent's runtime, or to that of the next agent. */
  addFault(fault: Fault): void {
    if (this.#agent === undefined) this.#faults.push(fault);
    else this.cri.on(fault);
  }

  /** Creates a pod on the node. */
  createPod(name: string, spec: PodSpec): void {
    const metadata = { name, namespace: "default" };
    this.api.put(podPath(name), {
      kind: "Pod",
      metadata,
      spec: { terminationGracePeriodSeconds: 2, ...spec, nodeName: "n1" },
    });
  }

  /** Sets deletionTimestamp and grace period, as the API server does for a delete request. */
  deletePod(name: string, graceSeconds = 2): void {
    const found = this.api.objects.get(podPath(name));
    if (found === undefined) return;
    const deletionTimestamp = new Date(this.clock.now()).toISOString();
    const metadata = { ...found.metadata, deletionTimestamp, deletionGracePeriodSeconds: graceSeconds };
    this.api.put(podPath(name), { ...found, metadata });
  }

  getStored(name: string): StoredPod | undefined {
    return this.api.objects.get(podPath(name)) as StoredPod | undefined;
  }

  getStatus(name: string): PodStatus {
    return this.getStored(name)?.status ?? {};
  }

  /** Reasons of the events about pods. */
  eventReasons(): readonly string[] {
    return this.api
      .listBelow("/api/v1/namespaces/default/events")
      .map((each) => String((each as unknown as { readonly reason?: string }).reason));
  }

  isReady(name: string): boolean {
    return this.getStatus(name).conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
  }

  async until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    const describe = (): string => {
      const pods = this.api.listBelow("/api/v1/namespaces/default/pods").map(({ status }) => status);
      return `${what}; pods: ${JSON.stringify(pods)}`;
    };
    await until(describe, holds, { timeoutMs: TIMEOUT_MS });
  }

  async untilReady(name: string): Promise<void> {
    await this.until(`${name} is ready`, () => this.isReady(name));
  }

  async untilGone(name: string): Promise<void> {
    await this.until(`${name} is gone`, async () => !this.getStored(name) && (await this.findRemains()).length === 0);
  }

  /** What is left of pods: sandboxes, containers, mounts, directories, logs. */
  async findRemains(): Promise<readonly string[]> {
    const { sandboxes, containers } = await this.#list();
    const directories = ["root/pods", "logs"].map(async (path) =>
      (await readdir(join(this.directory, path)).catch(() => [])).map((name) => `${path}/${name}`),
    );
    return [
      ...sandboxes.map(({ id, state }) => `sandbox ${id} ${state}`),
      ...containers.map(({ metadata, state }) => `container ${metadata?.name} ${state}`),
      ...(await systemMounter.listMountPoints(this.directory)).map((path) => `mount ${path}`),
      ...(await Promise.all(directories)).flat(),
    ];
  }

  #isOwn({ labels: found }: PodSandbox | RuntimeContainer): boolean {
    return this.#uids.has(found?.[labels.podUid] ?? "");
  }

  /** Sandboxes and containers of this node; other nodes may share the runtime. */
  async #list(): Promise<{
    readonly sandboxes: readonly PodSandbox[];
    readonly containers: readonly RuntimeContainer[];
  }> {
    const { runtime } = this.#runtime;
    const { items = [] } = await runtime.listPodSandbox({});
    const { containers = [] } = await runtime.listContainers({});
    return {
      sandboxes: items.filter((each) => this.#isOwn(each)),
      containers: containers.filter((each) => this.#isOwn(each)),
    };
  }

  /** The runtime, with starts recorded and without sandboxes and containers of other nodes. */
  #createBackend(): CriBackend {
    const { runtime, images } = this.#runtime;
    return {
      images,
      runtime: {
        ...runtime,
        runPodSandbox: (request, signal) => {
          this.#uids.add(request.config?.metadata?.uid ?? "");
          return runtime.runPodSandbox(request, signal);
        },
        listPodSandbox: async (request, signal) => {
          const { items = [] } = await runtime.listPodSandbox(request, signal);
          return { items: items.filter((each) => this.#isOwn(each)) };
        },
        listContainers: async (request, signal) => {
          const { containers = [] } = await runtime.listContainers(request, signal);
          return { containers: containers.filter((each) => this.#isOwn(each)) };
        },
        startContainer: async (request, signal) => {
          const response = await runtime.startContainer(request, signal);
          await this.#recordStart(request.containerId);
          return response;
        },
      },
    };
  }

  async #recordStart(id: string | undefined): Promise<void> {
    const { containers } = await this.#list();
    const name = containers.find((each) => each.id === id)?.metadata?.name ?? "";
    this.startCounts.set(name, (this.startCounts.get(name) ?? 0) + 1);
    const running = containers.filter(({ state }) => state === "CONTAINER_RUNNING");
    const runs = Map.groupBy(running, (each) => `${each.labels?.[labels.podUid]}/${each.metadata?.name}`);
    for (const [name, { length }] of runs) if (length > 1) this.violations.push(`${length} of ${name} run at a time`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.untilRestored();
    const agent = this.#agent;
    this.#agent = undefined;
    await agent?.running.close({ stopPods: true });
    this.#cri?.kill();
    await Promise.all(this.#closing);
    for (const point of await systemMounter.listMountPoints(this.directory)) await systemMounter.unmount(point);
    await rm(this.directory, { recursive: true, force: true });
  }
}

function podPath(name: string): string {
  return `/api/v1/namespaces/default/pods/${name}`;
}

/** The body, which fails when the signal aborts. */
async function* abortableBody(signal: AbortSignal, body: HttpResponse["body"]): AsyncGenerator<Uint8Array> {
  if (!isStreamed(body)) {
    yield* body instanceof Uint8Array ? [body] : body;
    return;
  }
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  aborted.catch(() => undefined);
  const chunks = body[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await Promise.race([chunks.next(), aborted]);
    if (done === true) return;
    yield value;
  }
}
