/**
 * An agent process on a node whose runtime, API server and drivers are played in this process. It is killed at a
 * chosen step: a call that changes something, before or after it is done, or the write of a state file.
 */

import { execFile } from "node:child_process";
import { type FSWatcher, mkdirSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import type { Node, NodeCondition } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { writeKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { listen } from "../../http/server/server.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { LoggedProcess } from "../std/logged-process.ts";
import { until } from "../std/until.ts";
import { FakeApi } from "./fake-api.ts";
import { FakeRuntime } from "./fake-runtime.ts";
import { mountAll } from "./mount-all.ts";
import { removeCgroups } from "./remove-cgroups.ts";
import { ScriptedCri } from "./scripted-cri.ts";

export interface KilledAgentOptions {
  /** Of its own, and empty. */
  readonly directory: string;
  /** The cgroup of its pods in every hierarchy. */
  readonly cgroup: string;
  /** The command line of svc before `agent`. */
  readonly program: readonly string[];
  readonly flags: readonly string[];
  /** Added to the environment of the agent. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Calls that change nothing, and those that every start makes. */
const READS = new RegExp(
  [
    "^(?:List|.*Status$|Version|RuntimeConfig|ImageFsInfo|GET )",
    "/(?:leases|nodes|resourceslices|csinodes)",
    "^Event (?:Starting|Node|CgroupV1)",
  ].join("|"),
);
const POD_PATH = "/api/v1/namespaces/default/pods/";
const TIMEOUT_MS = 30_000;
const execFileAsync = promisify(execFile);

export class KilledAgent implements AsyncDisposable {
  readonly directory: string;
  readonly rootDir: string;
  readonly api = new FakeApi();
  readonly fake = new FakeRuntime(systemClock);
  /** The steps since the last `killAt`. */
  steps: string[] = [];
  readonly #options: KilledAgentOptions;
  readonly #stack = new AsyncDisposableStack();
  readonly #watchers = new Set<FSWatcher>();
  #killAt = Number.POSITIVE_INFINITY;
  #isArmed = false;
  #process: LoggedProcess | undefined;

  private constructor(options: KilledAgentOptions) {
    this.#options = options;
    this.directory = options.directory;
    this.rootDir = join(options.directory, "root");
  }

  static async create(options: KilledAgentOptions): Promise<KilledAgent> {
    const agent = new KilledAgent(options);
    mkdirSync(agent.rootDir, { recursive: true });
    const transport = async (request: HttpRequest): Promise<HttpResponse> => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of request.body) chunks.push(chunk);
      const { method, path, query, headers, peer, signal } = request;
      const copy = { method, path, query, headers, peer, signal, body: toBody(chunks) };
      return await agent.step(nameRequest(request, chunks), () => agent.api.transport(copy));
    };
    const listener = await listen({ host: "127.0.0.1", port: 0, handler: transport, log: silentLogger });
    agent.#stack.use(listener);
    const cri = agent.#stack.use(
      new ScriptedCri(join(options.directory, "cri.sock"), {
        runtime: agent.#countCalls(agent.fake.runtime),
        images: agent.#countCalls(agent.fake.images),
      }),
    );
    await cri.start();
    const configuration = {
      apiVersion: "svclet.config.svc.io/v1beta1",
      kind: "SvcletConfiguration",
      podLogsDir: join(options.directory, "logs"),
      containerRuntimeEndpoint: cri.endpoint,
      cgroupRoot: options.cgroup,
      failCgroupV1: false,
      failSwapOn: false,
      // Leaves the kernel parameters unchanged.
      makeIPTablesUtilChains: false,
      enableServer: false,
      healthzPort: 0,
      readOnlyPort: 0,
      authorization: { mode: "AlwaysAllow" },
    };
    writeFileSync(join(options.directory, "agent.json"), JSON.stringify(configuration));
    await writeKubeconfig(join(options.directory, "svcconfig"), {
      server: `http://127.0.0.1:${listener.port}`,
      cluster: "c",
      user: "u",
    });
    return agent;
  }

  get isRunning(): boolean {
    return this.#process?.isRunning === true;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  get log(): string {
    return this.#process?.log ?? "";
  }

  /** Ends the agent at a step from now on, counted from 0; infinity: never, and the steps are only recorded. */
  killAt(index: number): void {
    this.steps = [];
    this.#killAt = index;
    this.#isArmed = true;
  }

  disarm(): void {
    this.#isArmed = false;
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers.clear();
  }

  /** Each replacement of a file in the directory is a step. The agent may have continued when it is noticed. */
  watchFiles(directory: string): void {
    mkdirSync(directory, { recursive: true });
    const watcher = watch(directory, (_event, name) => {
      if (name !== null && /^(?:.*_state|evictions\.json|kubelet_internal_checkpoint)$/.test(name)) {
        void this.step(`write ${name}`, async () => undefined).catch(() => undefined);
      }
    });
    this.#watchers.add(watcher);
  }

  /** Rejects once the agent is killed there. */
  async step<T>(name: string, work: () => Promise<T>): Promise<T> {
    const counts = this.#isArmed && !READS.test(name);
    if (counts) await this.#reach(name.startsWith("write ") ? name : `before ${name}`);
    const result = await work();
    if (counts && !name.startsWith("write ")) await this.#reach(`after ${name}`);
    return result;
  }

  async #reach(name: string): Promise<void> {
    const index = this.steps.push(name) - 1;
    if (index < this.#killAt) return;
    await this.#process?.stop("SIGKILL");
    throw new Error(`the agent was killed ${name}`);
  }

  /** Resolves when the agent has registered the node, or was killed. */
  async start(): Promise<void> {
    const { directory, program, flags, env = {} } = this.#options;
    this.#process = new LoggedProcess(
      [
        ...program,
        "agent",
        "--hostname-override=n1",
        `--config=${directory}/agent.json`,
        `--root-dir=${this.rootDir}`,
        `--cert-dir=${directory}/pki`,
        `--svcconfig=${directory}/svcconfig`,
        ...flags,
      ],
      { logFile: join(directory, "agent.log"), env },
    );
  }

  /** Ends the agent as a loss of power does. */
  async kill(): Promise<void> {
    await this.#process?.stop("SIGKILL");
  }

  /** Resolves when the agent was killed at its step. */
  async ended(): Promise<void> {
    await Promise.race([this.#process?.exited, setTimeout(TIMEOUT_MS, undefined, { ref: false })]);
    if (this.isRunning) throw new Error(`the step was not reached: ${this.steps.join(", ")}`);
  }

  async until(what: string, holds: () => boolean): Promise<void> {
    const check = (): boolean => {
      if (holds()) return true;
      if (!this.isRunning) throw new Error(`the agent has ended before: ${what}; its log:\n${this.log.slice(-4_000)}`);
      return false;
    };
    await until(() => `${what}; the log:\n${this.log.slice(-4_000)}`, check, { timeoutMs: TIMEOUT_MS });
  }

  createPod(name: string, spec: Partial<PodSpec> = {}, more: Pod["metadata"] = {}): Pod {
    const containers = [{ name, image: "busybox:1", imagePullPolicy: "IfNotPresent" as const }];
    const metadata = { ...more, name, namespace: "default" };
    const pod = mountAll({
      kind: "Pod",
      metadata,
      spec: { nodeName: "n1", terminationGracePeriodSeconds: 1, containers, ...spec },
    });
    return this.api.put(`${POD_PATH}${name}`, pod) as Pod;
  }

  deletePod(name: string): void {
    const found = this.api.objects.get(`${POD_PATH}${name}`);
    if (found === undefined) return;
    const deletion = { deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 1 };
    this.api.put(`${POD_PATH}${name}`, { ...found, metadata: { ...found.metadata, ...deletion } });
  }

  statusOf(name: string): NonNullable<Pod["status"]> {
    return (this.api.objects.get(`${POD_PATH}${name}`) as Pod | undefined)?.status ?? {};
  }

  getConditions(): readonly NodeCondition[] {
    const node = this.api.objects.get("/api/v1/nodes/n1") as Node | undefined;
    return node?.status?.conditions ?? [];
  }

  getAllocatable(): Readonly<Record<string, string>> {
    return (this.api.objects.get("/api/v1/nodes/n1") as Node | undefined)?.status?.allocatable ?? {};
  }

  exists(name: string): boolean {
    return this.api.objects.has(`${POD_PATH}${name}`);
  }

  /** The events of a reason, as many times as they were counted. */
  countEvents(reason: string): number {
    const events = this.api.listBelow("/api/v1/namespaces/default/events") as readonly (ApiObject & {
      readonly reason?: string;
      readonly count?: number;
    })[];
    return events.reduce((sum, each) => sum + (each.reason === reason ? (each.count ?? 1) : 0), 0);
  }

  /** Running containers of a name. */
  countRunning(name: string): number {
    return this.fake.containersNamed(name).filter(({ status }) => status.state === "CONTAINER_RUNNING").length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.disarm();
    await this.kill();
    // An agent that was killed leaves it mounted where the machine's mounts are private.
    await execFileAsync("umount", ["--lazy", this.rootDir]).catch(() => undefined);
    await this.#stack.disposeAsync();
    await removeCgroups(this.#options.cgroup);
  }

  #countCalls<T extends object>(service: T): T {
    const counted = Object.entries(service).map(([method, call]) => {
      const name = method.slice(0, 1).toUpperCase() + method.slice(1);
      return [method, (...args: readonly unknown[]) => this.step(name, () => call(...args))] as const;
    });
    return Object.fromEntries(counted) as T;
  }
}

async function* toBody(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

/** `PATCH /api/v1/namespaces/default/pods/web/status`, `Event Evicted`. */
function nameRequest({ method, path }: HttpRequest, chunks: readonly Uint8Array[]): string {
  if (method !== "POST" || !path.endsWith("/events")) return `${method} ${decodeURIComponent(path)}`;
  try {
    return `Event ${JSON.parse(Buffer.concat(chunks).toString()).reason}`;
  } catch {
    // The API server refuses it, and the client sends JSON instead.
    return "GET in another format";
  }
}
