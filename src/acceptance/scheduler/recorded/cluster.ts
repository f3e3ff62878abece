/** An API server in memory and a scheduler in fake time, for one scenario. */
import { createDefaultConfig } from "../../../apiserver/config/default-config.ts";
import { createApiServer } from "../../../apiserver/server.ts";
import { createClient } from "../../../client/api-client.ts";
import type { Client, Transport } from "../../../client/client.ts";
import { createSharedInformers } from "../../../client/informer/shared-informers.ts";
import { makeRequest } from "../../../http/request.ts";
import { parseConfiguration } from "../../../scheduler/config/load-configuration.ts";
import { runScheduler } from "../../../scheduler/scheduler.ts";
import { seededRandom } from "../../../std/crypto/random.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import type { Json, Scenario } from "./scenario.ts";

/** The clock moves in steps of this time. */
const TICK_MS = 50;
/** How long the extender takes for the pod `blocker`. */
const BLOCKED_MS = 1500;
const EXTENDER = "http://extender.test";

export interface ScenarioCluster extends AsyncDisposable {
  readonly client: Client;
  readonly extenderCalls: readonly string[];
  send(method: string, path: string, body?: Json): Promise<Json>;
  /** Another scheduler beside the first one. */
  startScheduler(): AsyncDisposable;
  restart(): Promise<void>;
  advance(milliseconds: number): Promise<void>;
  /** Moves the clock until the condition holds, at most for the time. */
  advanceUntil(isReached: () => boolean, milliseconds: number): Promise<void>;
}

/** `wrap` changes the client of the scheduler. */
export async function startScenarioCluster(
  { config, featureGates = {} }: Pick<Scenario, "config" | "featureGates">,
  wrap: (client: Client) => Client = (client) => client,
): Promise<ScenarioCluster> {
  const clock = new FakeClock();
  const log = silentLogger;
  const defaults = createDefaultConfig({ ...featureGates });
  // Nodes have the taints of the scenario only, and pods no service account.
  const admission = { ...defaults.admission, disabled: ["ServiceAccount", "TaintNodesByCondition"] };
  const serverConfig = { ...defaults, admission };
  const { server } = await createApiServer(serverConfig, { clock, log }, () => "");
  const token = server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
  const headers = { authorization: `Bearer ${token}` };
  const client = createClient({ transport: server.handler, headers });
  const random = seededRandom(1);
  const extenderCalls: string[] = [];
  const startScheduler = (): AsyncDisposable => {
    const stop = new AbortController();
    const shared = { client: wrap(client), clock, random, log };
    const informers = createSharedInformers(shared, stop.signal);
    const running = runScheduler({
      ...shared,
      informers,
      config: config && readConfig(config),
      extenderTransport: () => extender(clock, extenderCalls),
      signal: stop.signal,
    });
    running.catch(() => {});
    return {
      async [Symbol.asyncDispose]() {
        stop.abort(new Error("The scheduler stops"));
        await running;
        await informers[Symbol.asyncDispose]();
      },
    };
  };
  let scheduler = startScheduler();
  const advance = async (milliseconds: number): Promise<void> => {
    await clock.advance(milliseconds);
    for (let turn = 0; turn < 4; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  return {
    client,
    extenderCalls,
    async send(method, path, body) {
      const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
      const text = body === undefined ? "" : JSON.stringify(body);
      const [bare = "", query] = path.split("?");
      const request = makeRequest({
        method,
        path: bare,
        query,
        headers: { ...headers, "content-type": type },
        body: text,
      });
      const response = await server.handler(request);
      const chunks: Uint8Array[] = [];
      for await (const chunk of response.body as AsyncIterable<Uint8Array>) chunks.push(chunk);
      const answer = Buffer.concat(response.body instanceof Uint8Array ? [response.body] : chunks).toString();
      if (response.status > 299) throw new Error(`${method} ${path}: ${response.status} ${answer}`);
      return JSON.parse(answer) as Json;
    },
    advance,
    async advanceUntil(isReached, milliseconds) {
      for (let passed = 0; passed < milliseconds && !isReached(); passed += TICK_MS) await advance(TICK_MS);
    },
    startScheduler,
    async restart() {
      await scheduler[Symbol.asyncDispose]();
      scheduler = startScheduler();
    },
    async [Symbol.asyncDispose]() {
      await scheduler[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

function readConfig(config: Json) {
  const text = JSON.stringify(config).replaceAll("{extender}", EXTENDER);
  const whole = { apiVersion: "kubescheduler.config.k8s.io/v1", kind: "KubeSchedulerConfiguration" };
  return parseConfiguration({ ...whole, ...(JSON.parse(text) as Json) }).scheduler;
}

/** Accepts all nodes; answers later for the pod `blocker`. */
function extender(clock: FakeClock, calls: string[]): Transport {
  return async (request) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request.body) chunks.push(chunk);
    const { Pod: pod, NodeNames } = JSON.parse(Buffer.concat(chunks).toString()) as {
      readonly Pod: { readonly metadata: { readonly name: string } };
      readonly NodeNames: readonly string[];
    };
    calls.push(pod.metadata.name);
    if (pod.metadata.name === "blocker") await clock.sleep(BLOCKED_MS);
    return { status: 200, headers: {}, body: Buffer.from(JSON.stringify({ NodeNames })) };
  };
}
