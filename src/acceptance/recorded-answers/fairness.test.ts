/**
 * Compares flow schemas, priority levels, the classification of requests and what limits do with the recording of a
 * Kubernetes 1.33 server. `testdata/recorded-differences/fairness.json` lists the scenarios that differ by reason.
 *
 *     SVC_SCENARIO=fairness/limit node src/acceptance/recorded-answers/fairness.test.ts   prints their differences
 */
import t from "tap";
import type { HttpResponse } from "../../http/message.ts";
import { makeRequest } from "../../http/request.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import type { TestServer } from "../../testing/apiserver/server-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { keepOpen } from "../../testing/storage/keep-open.ts";
import { RecordedDifferences } from "./recorded-differences.ts";
import type { Expected, Scenario, Step } from "./scenario.ts";
import { Player, recordedScenarios, startRecordedServer } from "./scenarios.ts";

interface MetricFamily {
  /** Sets of label names, each joined with commas. */
  readonly labels: readonly string[];
  readonly help: string;
  readonly type: string;
}

interface FairnessExpected extends Omit<Expected, "code"> {
  readonly code?: number;
  /** Names of the objects whose uids the headers have; null: there are no such headers. */
  readonly pf?: { readonly flowSchema: string; readonly priorityLevel: string } | null;
  readonly firstLine?: string;
  readonly commas?: number;
  readonly metrics?: Readonly<Record<string, MetricFamily>>;
}

interface FairnessStep extends Omit<Step, "action" | "expect"> {
  readonly action?: Step["action"] | "hold" | "release" | "restart" | "metrics";
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly expect?: FairnessExpected;
}

interface FairnessScenario extends Omit<Scenario, "steps"> {
  readonly steps: readonly FairnessStep[];
  readonly fresh?: boolean;
  readonly restart?: boolean;
}

const FLOW_CONTROL = "/apis/flowcontrol.apiserver.k8s.io/v1";
/** What a client that stays connected has sent of its body. */
const PART_OF_BODY = '{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview",';
/** Longer than what the recorded server was given to set conditions. */
const START_MS = 3000;

class Recording implements AsyncDisposable {
  readonly #store = createMemoryStore({ clock: new FakeClock() });
  #server: TestServer | undefined;
  #starts = 0;
  #names = new Map<string, string>();
  #held: AbortController | undefined;

  async play({ setup = [], steps, ...scenario }: FairnessScenario): Promise<string | undefined> {
    let player = new Player(await this.#start());
    const failure = await player.play({ ...scenario, setup, steps: [] });
    if (failure !== undefined) return failure;
    for (const [place, step] of steps.entries()) {
      if (step.action === "restart") {
        await this.#stop();
        player = new Player(await this.#start());
        continue;
      }
      const difference = await this.#step(player, { ...scenario, steps: [] }, step);
      if (difference !== undefined) return `step ${place}, ${step.action ?? "request"}: ${difference}`;
    }
    return undefined;
  }

  async #step(player: Player, scenario: Scenario, step: FairnessStep): Promise<string | undefined> {
    const server = await this.#start();
    switch (step.action) {
      case "hold":
        await this.#hold(server, step);
        return undefined;
      case "release":
        this.#held?.abort(new Error("the client disconnected"));
        return undefined;
      case "metrics":
        return compareMetrics(step.expect?.metrics ?? {}, (await server.send("GET /metrics")).text);
      default: {
        const { firstLine, commas, pf, ...expect } = step.expect ?? {};
        const isPage = firstLine !== undefined;
        const played = { ...step, ...(isPage ? { mode: "headers" } : {}), ...(step.expect ? { expect } : {}) } as Step;
        const difference = await player.play({ ...scenario, setup: [], steps: [played] });
        if (difference !== undefined || step.expect === undefined) return difference;
        return (await this.#compareClassification(server, player.lastHeaders, pf)) ?? (await comparePage(server, step));
      }
    }
  }

  async #compareClassification(
    server: TestServer,
    headers: HttpResponse["headers"],
    wanted: FairnessExpected["pf"],
  ): Promise<string | undefined> {
    const schema = headers["x-kubernetes-pf-flowschema-uid"];
    const level = headers["x-kubernetes-pf-prioritylevel-uid"];
    const found =
      schema === undefined && level === undefined
        ? null
        : { flowSchema: await this.#nameOf(server, schema), priorityLevel: await this.#nameOf(server, level) };
    const [shown, expected] = [JSON.stringify(found), JSON.stringify(wanted)];
    return shown === expected ? undefined : `pf: ${shown}, not ${expected}`;
  }

  async #nameOf(server: TestServer, header: string | readonly string[] | undefined): Promise<string> {
    const uid = String(header);
    if (!this.#names.has(uid)) {
      for (const plural of ["flowschemas", "prioritylevelconfigurations"]) {
        const { items } = (await server.send(`GET ${FLOW_CONTROL}/${plural}`)).json;
        for (const { metadata } of items) this.#names.set(metadata.uid, metadata.name);
      }
    }
    return this.#names.get(uid) ?? uid;
  }

  /** Sends a request whose body does not end. */
  async #hold(server: TestServer, { path = "", headers = {}, ms = 0 }: FairnessStep & { ms?: number }): Promise<void> {
    const held = new AbortController();
    this.#held = held;
    async function* body(): AsyncGenerator<Uint8Array> {
      yield Buffer.from(PART_OF_BODY);
      await new Promise((_, reject) => held.signal.addEventListener("abort", () => reject(held.signal.reason)));
    }
    const sent = { "content-type": "application/json", authorization: "Bearer admin-token", ...headers };
    const request = makeRequest({ method: "POST", path, headers: sent, signal: held.signal });
    server.parts.server.handler({ ...request, body: body() }).catch(() => {});
    await server.clock.advance(ms);
  }

  async #start(): Promise<TestServer> {
    if (this.#server === undefined) {
      this.#server = await startRecordedServer({}, undefined, {
        store: keepOpen(this.#store),
        // Other uids than those of the server before.
        random: seededRandom(++this.#starts),
      });
      await this.#server.clock.advance(START_MS);
    }
    return this.#server;
  }

  async #stop(): Promise<void> {
    this.#held?.abort(new Error("the server stops"));
    await this.#server?.[Symbol.asyncDispose]();
    this.#server = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    await this.#store[Symbol.asyncDispose]();
  }
}

/** Compares the first line of a debug page; the others vary. */
async function comparePage(server: TestServer, { request, expect }: FairnessStep): Promise<string | undefined> {
  if (expect?.firstLine === undefined || request === undefined) return undefined;
  const { path, query } = request;
  const { text } = await server.send(`GET ${path}${query ? `?${query}` : ""}`);
  // The widths of the columns follow from the other lines.
  const [first = ""] = text.split("\n");
  const found = [first.replace(/ +/g, " "), first.split(",").length - 1];
  const wanted = [expect.firstLine.replace(/ +/g, " "), expect.commas];
  return JSON.stringify(found) === JSON.stringify(wanted) ? undefined : `${found}, not ${wanted}`;
}

/** Families without series may be missing from the recording. */
function compareMetrics(wanted: Readonly<Record<string, MetricFamily>>, text: string): string | undefined {
  for (const [name, { labels, help, type }] of Object.entries(wanted)) {
    const shown = text.split("\n").filter((line) => line.startsWith(name) || line.startsWith(`# HELP ${name} `));
    const samples = shown.filter((line) => new RegExp(`^${name}(?:_bucket|_sum|_count)?[{ ]`).test(line));
    const sets = new Set(samples.map((line) => [...line.matchAll(/(\w+)="/g)].map((match) => match[1] ?? "")));
    const names = new Set([...sets].map((set) => set.filter((label) => label !== "le").join(",")));
    const found = [[...names], shown.find((line) => line.startsWith("# HELP"))?.replace(`# HELP ${name} `, "")];
    if (JSON.stringify(found) !== JSON.stringify([labels, help])) return `${name}: ${JSON.stringify(found)}`;
    if (!text.includes(`# TYPE ${name} ${type}\n`)) return `${name} is no ${type}`;
  }
  return undefined;
}

t.test("priority and fairness is that of a Kubernetes 1.33 server", { timeout: 300_000 }, async (t) => {
  const scenarios = recordedScenarios("fairness", "recorded-apiserver-more") as FairnessScenario[] | undefined;
  if (scenarios === undefined) {
    t.comment("Skipped: shared/ is not present");
    return;
  }
  const selected = process.env.SVC_SCENARIO;
  const differences = new RecordedDifferences("fairness");
  const orderOf = ({ fresh, restart }: FairnessScenario): number => (fresh ? 0 : restart ? 2 : 1);
  await using recording = new Recording();
  for (const scenario of scenarios.toSorted((a, b) => orderOf(a) - orderOf(b))) {
    if (selected !== undefined && !scenario.id.includes(selected)) continue;
    const difference = await recording.play(scenario);
    if (selected !== undefined && difference !== undefined) console.log(`${scenario.id}\n    ${difference}`);
    differences.add(scenario.id, difference);
  }
  if (selected !== undefined) return;
  t.comment(`fairness: ${scenarios.length - differences.count}/${scenarios.length} scenarios`);
  t.same(differences.unlisted(), [], "no other scenario differs");
  t.same(differences.resolved(), [], "each listed scenario differs");
});
