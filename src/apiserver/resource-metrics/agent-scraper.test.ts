import t from "tap";
import type { Node } from "../../api/core/node/schema.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { AgentResponse } from "../proxy/agent-connections.ts";
import { AgentScraper } from "./agent-scraper.ts";
import { computeUsage } from "./usage.ts";

const never = new AbortController().signal;

type Answer = (signal: AbortSignal) => Promise<AgentResponse>;

const node = (name: string): Node => ({ metadata: { name } });

function respond(body: AsyncIterable<Uint8Array>, status = 200): AgentResponse {
  return { status, contentType: "text/plain", body };
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

/** Waits until the signal aborts. */
function hang(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

class FakeAgents {
  readonly clock = new FakeClock();
  readonly answers = new Map<string, Answer>();
  /** Requests by node. */
  readonly requests = new Map<string, number>();
  running = 0;
  runningMax = 0;
  readonly scraper: AgentScraper;

  constructor(...names: readonly string[]) {
    for (const name of names) this.answers.set(name, this.healthy);
    this.scraper = new AgentScraper({
      nodes: async () => [...this.answers.keys()].map(node),
      agents: { get: (found, _path, signal) => this.#get(found.metadata?.name ?? "", signal) },
      clock: this.clock,
      log: silentLogger,
    });
  }

  /** Uses half a core. */
  readonly healthy: Answer = async () => {
    const seconds = 1000 + this.clock.monotonic() / 2000;
    return respond(bytesOf(`node_cpu_usage_seconds_total ${seconds}\nnode_memory_working_set_bytes 1024\n`));
  };

  get total(): number {
    return [...this.requests.values()].reduce((sum, count) => sum + count, 0);
  }

  cpu(name: string): string | undefined {
    return computeUsage(this.scraper.samplesOf(name)?.node)?.usage.cpu;
  }

  /** Sends a request for metrics; resolves with the milliseconds that it waited. */
  async request(signal = never): Promise<number> {
    const began = this.clock.monotonic();
    let took: number | undefined;
    const done = this.scraper.request(signal).then(() => {
      took = this.clock.monotonic() - began;
    });
    while (took === undefined && this.clock.monotonic() - began < 60_000) await this.clock.advance(100);
    await done;
    return took ?? 0;
  }

  async #get(name: string, signal: AbortSignal): Promise<AgentResponse> {
    this.requests.set(name, (this.requests.get(name) ?? 0) + 1);
    this.runningMax = Math.max(this.runningMax, ++this.running);
    try {
      return (await this.answers.get(name)?.(signal)) ?? respond(bytesOf(""), 404);
    } finally {
      this.running--;
    }
  }
}

t.test("agents are scraped from the first request on, until none came for five minutes", async (t) => {
  const agents = new FakeAgents("a");
  await using scraper = agents.scraper;
  await agents.clock.advance(600_000);
  t.equal(agents.total, 0, "without a client");
  const tookMs = await agents.request();
  t.ok(tookMs >= 2000 && tookMs <= 2200, `two samples after 2 s: ${tookMs}`);
  t.equal(agents.total, 2);
  t.equal(agents.cpu("a"), "500m");
  t.ok((await agents.request()) < 200, "later requests do not wait");
  await agents.clock.advance(60_000);
  t.equal(agents.total, 6, "every 15 s");
  await agents.clock.advance(300_000);
  const stoppedAt = agents.total;
  await agents.clock.advance(3_600_000);
  t.equal(agents.total, stoppedAt, "stopped");
  t.equal(agents.clock.pending, 0);
  t.equal(scraper.samplesOf("a"), undefined, "nothing is kept");
  await agents.request();
  t.equal(agents.cpu("a"), "500m", "starts again");
});

t.test("agents that are down, slow, or respond with garbage or without end delay the others by seconds", async (t) => {
  const agents = new FakeAgents("good", "down", "hangs", "drips", "garbage", "endless", "refuses");
  await using _scraper = agents.scraper;
  agents.answers.set("down", async () => {
    throw new Error("connect ECONNREFUSED");
  });
  agents.answers.set("hangs", hang);
  agents.answers.set("drips", async (signal) =>
    respond(
      (async function* () {
        yield Buffer.from("node_cpu_usage_seconds_total 1\n");
        await hang(signal);
      })(),
    ),
  );
  agents.answers.set("garbage", async () => respond(bytesOf("\0\xff{{{")));
  agents.answers.set("endless", async () =>
    respond(
      (async function* () {
        for (;;) yield Buffer.alloc(2 ** 20, "# \n");
      })(),
    ),
  );
  let closed = 0;
  agents.answers.set("refuses", async () =>
    respond(
      (async function* () {
        try {
          yield Buffer.from("Forbidden");
          yield Buffer.from("!");
        } finally {
          closed++;
        }
      })(),
      403,
    ),
  );
  const tookMs = await agents.request();
  t.ok(tookMs <= 8200, `${tookMs}`);
  t.equal(agents.cpu("good"), "500m");
  for (const name of ["down", "hangs", "drips", "garbage", "endless", "refuses"]) t.equal(agents.cpu(name), undefined);
  t.ok(closed > 0, "the refused response is closed");
  await agents.clock.advance(120_000);
  t.ok(agents.running <= 2, "requests end after their timeout");
  t.equal(agents.cpu("good"), "500m");
  agents.answers.set("down", agents.healthy);
  await agents.clock.advance(60_000);
  t.equal(agents.cpu("down"), "500m", "is back");
});

t.test("at most 32 agents are scraped at once, those that failed last", async (t) => {
  const names = Array.from({ length: 100 }, (_, index) => `n${index}`);
  const agents = new FakeAgents(...names);
  await using _scraper = agents.scraper;
  for (const name of names.slice(0, 50)) agents.answers.set(name, hang);
  const tookMs = await agents.request();
  t.ok(tookMs <= 8200, `${tookMs}`);
  t.equal(agents.runningMax, 32);
  await agents.clock.advance(60_000);
  for (const name of names.slice(50)) t.equal(agents.cpu(name), "500m", name);
});

t.test("a request does not wait without nodes, or when no agent responds", async (t) => {
  const agents = new FakeAgents();
  await using _scraper = agents.scraper;
  t.ok((await agents.request()) < 200);
  const unreachable = new FakeAgents("a");
  await using _other = unreachable.scraper;
  unreachable.answers.set("a", async () => {
    throw new Error("connect ECONNREFUSED");
  });
  t.ok((await unreachable.request()) < 200);
});

t.test("samples of an agent that stops responding are served for a minute", async (t) => {
  const agents = new FakeAgents("a");
  await using scraper = agents.scraper;
  await agents.request();
  agents.answers.set("a", hang);
  await agents.clock.advance(50_000);
  t.equal(agents.cpu("a"), "500m");
  await agents.request();
  await agents.clock.advance(20_000);
  t.equal(agents.cpu("a"), undefined);
  agents.answers.delete("a");
  await agents.clock.advance(30_000);
  t.equal(scraper.samplesOf("a"), undefined, "the node was deleted");
});

t.test("a request ends with its client, and the scraper with the server", async (t) => {
  const agents = new FakeAgents("a");
  agents.answers.set("a", hang);
  const client = new AbortController();
  const request = agents.scraper.request(client.signal);
  await agents.clock.advance(100);
  client.abort(new Error("the client is gone"));
  await t.rejects(request, /the client is gone/);
  await agents.scraper[Symbol.asyncDispose]();
  t.equal(agents.running, 0);
  t.equal(agents.clock.pending, 0, "no timer is left");
  await t.rejects(agents.scraper.request(never), /the server is stopping/);
});
