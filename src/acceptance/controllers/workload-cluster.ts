/** An API server in memory with controllers that reach it over a connection with faults, and played nodes. */
import type { Test } from "tap";
import { builtinScheme } from "../../api/builtin.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { type ApiServer, createApiServer } from "../../apiserver/server.ts";
import { createClient } from "../../client/api-client.ts";
import type { Client } from "../../client/client.ts";
import { type RunningControllers, startControllers } from "../../controllers/controller-manager.ts";
import type { ControllerOptions } from "../../controllers/controller-options.ts";
import type { Handler, HttpRequest, HttpResponse } from "../../http/message.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { PodRule } from "./recorded/scenario.ts";
import { ScriptedNode } from "./recorded/scripted-node.ts";

const TICK_MS = 100;
const SETTLE_MS_MAX = 1_200_000;
/** The controllers that the server runs itself. */
const EMBEDDED = ["garbage-collector", "namespace", "node-lifecycle", "serviceaccount"];
const CA = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";

export interface WorkloadClusterOptions {
  /** The controllers that the server runs itself, without faults. */
  readonly embedded?: readonly string[] | undefined;
  readonly options?: Partial<ControllerOptions> | undefined;
}

/** Answers a request of the controllers, as a rule with what `send` resolves with. */
export type Connection = (request: HttpRequest, send: () => Promise<HttpResponse>) => Promise<HttpResponse>;

export const plainConnection: Connection = (_request, send) => send();

export function isWrite({ method, path }: HttpRequest): boolean {
  return method !== "GET" && !path.endsWith("/events") && !path.includes("/events/");
}

export class WorkloadCluster {
  readonly clock: FakeClock;
  readonly client: Client;
  connection: Connection = plainConnection;
  /** How often the controllers wrote. */
  writes = 0;
  /** The maximum of pods at the same time that were not being deleted, in the last namespace. */
  podsMax = 0;
  readonly #server: ApiServer;
  readonly #names: readonly string[];
  readonly #options: Partial<ControllerOptions> | undefined;
  #player: ScriptedNode | undefined;
  readonly #running = new Set<RunningControllers>();
  #cut = new AbortController();
  #changedAt = 0;

  private constructor(
    server: ApiServer,
    clock: FakeClock,
    names: readonly string[],
    options: Partial<ControllerOptions> | undefined,
  ) {
    this.#server = server;
    this.clock = clock;
    this.#names = names;
    this.#options = options;
    const token = server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
    this.client = createClient({ transport: server.handler, headers: { authorization: `Bearer ${token}` } });
  }

  static async start(
    t: Pick<Test, "teardown">,
    names: readonly string[],
    { embedded: embeddedControllers = EMBEDDED, options }: WorkloadClusterOptions = {},
  ): Promise<WorkloadCluster> {
    const clock = new FakeClock();
    const authorizationModes = ["Node", "RBAC"];
    const config = { ...defaultConfig, authorizationModes, embeddedControllers, garbageCollector: true };
    const { server } = await createApiServer(config, { clock, log: silentLogger }, () => "");
    const cluster = new WorkloadCluster(server, clock, names, options);
    t.teardown(async () => {
      await cluster.stop();
      await server[Symbol.asyncDispose]();
    });
    await clock.advance(1000);
    return cluster;
  }

  /** Starts one more instance of the controllers. */
  startControllers(): void {
    const transport: Handler = async (request) => {
      const signal = AbortSignal.any([request.signal, this.#cut.signal]);
      const response = await this.connection(request, () => this.#server.handler({ ...request, signal }));
      if (isWrite(request)) this.writes++;
      return response;
    };
    const running = startControllers(this.#names, {
      clientFor: (user) =>
        createClient({ transport, headers: { authorization: `Bearer ${this.#server.loopbackToken(user)}` } }),
      clock: this.clock,
      random: systemRandom,
      log: silentLogger,
      kinds: builtinScheme().kinds(),
      clusterCa: CA,
      options: this.#options,
    });
    this.#running.add(running);
  }

  /** The nodes of the last namespace. */
  get player(): ScriptedNode | undefined {
    return this.#player;
  }

  /** Ends all connections of the controllers. */
  cut(): void {
    this.#cut.abort(new DOMException("The connection was cut", "AbortError"));
    this.#cut = new AbortController();
  }

  /** Stops the controllers without waiting for requests in progress. */
  async stop(): Promise<void> {
    const stopping = [...this.#running].map((running) => running[Symbol.asyncDispose]());
    this.#running.clear();
    this.cut();
    await this.#turnUntil(Promise.all(stopping));
  }

  /** Creates a namespace and plays the nodes of its pods until `signal` aborts. */
  async openNamespace(
    name: string,
    rules: readonly PodRule[],
    nodes: readonly Node[],
    signal: AbortSignal,
  ): Promise<void> {
    await this.client.create(namespaceKind, { metadata: { name } });
    while ((await this.client.list(serviceAccountKind, { namespace: name })).items.length === 0) await this.#tick();
    const player = new ScriptedNode(this.client, this.clock, rules, true);
    this.#player = player;
    for (const node of nodes) await player.addNode(node);
    signal.addEventListener("abort", () => player.stop());
    void this.#watchPods(name, player, signal);
  }

  async #watchPods(namespace: string, player: ScriptedNode, signal: AbortSignal): Promise<void> {
    const living = new Set<string>();
    this.podsMax = 0;
    try {
      for await (const event of this.client.watch(podKind, { namespace, resourceVersion: "0" }, signal)) {
        this.#changedAt = this.clock.monotonic();
        if (event.type === "BOOKMARK") continue;
        const { uid = "", deletionTimestamp } = event.object.metadata ?? {};
        if (event.type === "DELETED" || deletionTimestamp !== undefined) living.delete(uid);
        else living.add(uid);
        this.podsMax = Math.max(this.podsMax, living.size);
        if (event.type !== "DELETED") player.podChanged(event.object);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Passes time until neither pods change nor controllers write for `quietMs`, and `isDone`. */
  async settle(quietMs: number, isDone: () => Promise<boolean>): Promise<void> {
    const start = this.clock.monotonic();
    let writes = this.writes;
    this.#changedAt = start;
    while (this.clock.monotonic() - this.#changedAt < quietMs || !(await isDone())) {
      if (this.clock.monotonic() - start > SETTLE_MS_MAX) throw new Error("The controllers never rested");
      await this.#tick();
      if (this.writes !== writes) this.#changedAt = this.clock.monotonic();
      writes = this.writes;
    }
  }

  async #tick(): Promise<void> {
    await this.clock.advance(TICK_MS);
    for (let turn = 0; turn < 4; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  }

  async #turnUntil(end: Promise<unknown>): Promise<void> {
    let ended = false;
    const stop = (): void => {
      ended = true;
    };
    end.then(stop, stop);
    while (!ended) await this.#tick();
  }
}
