import t from "tap";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { makeQuery, toQuery } from "../../testing/dns/queries.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { ExchangeMessages } from "./exchange.ts";
import { type ForwardedResponse, Forwarder } from "./forwarder.ts";

/** What a server does with a query: the code of its response, no response, or one that does not fit over UDP. */
type Behaviour = "ok" | "missing" | "failure" | "refused" | "silent" | "truncated" | "no EDNS";

function respond(query: Buffer, code: number, { tc = false, answer = code === 0 } = {}): Buffer {
  const header = Buffer.from([
    query[0]!,
    query[1]!,
    tc ? 0x83 : 0x81,
    0x80 | code,
    0,
    1,
    0,
    answer ? 1 : 0,
    0,
    0,
    0,
    0,
  ]);
  const hasOpt = query[11] === 1;
  const question = query.subarray(12, query.length - (hasOpt ? 11 : 0));
  const record = answer ? Buffer.from("c00c000100010000012c0004c0000201", "hex") : Buffer.alloc(0);
  return Buffer.concat([header, question, record]);
}

function start(...servers: readonly string[]) {
  const clock = new FakeClock();
  const stop = new AbortController();
  const behaviours = new Map<string, Behaviour>(servers.map((address) => [address, "ok"]));
  const exchanges: string[] = [];
  const exchange: ExchangeMessages = async ({ server, query, protocol, parse, timeoutMs }) => {
    const usesEdns = query[11] === 1;
    exchanges.push(`${server.address} ${protocol}${usesEdns ? "" : " without EDNS"}`);
    const behaviour = behaviours.get(server.address);
    if (behaviour === "silent") {
      await clock.sleep(timeoutMs);
      throw new Error("no response");
    }
    await clock.sleep(10);
    const codes = { missing: 3, failure: 2, refused: 5 } as const;
    const code = behaviour === "no EDNS" && usesEdns ? 1 : (codes[behaviour as keyof typeof codes] ?? 0);
    const response = parse(respond(query, code, { tc: behaviour === "truncated" && protocol === "udp" }));
    if (response === undefined) throw new Error("malformed");
    return response;
  };
  const forwarder = new Forwarder({
    serversFor: () => servers.map((address) => ({ address, port: 53 })),
    exchange,
    clock,
    random: seededRandom(1),
    log: silentLogger,
    signal: stop.signal,
  });
  const resolve = (name: string, client = "10.1.0.1") => forwarder.forward(toQuery(makeQuery(name, "A", {})), client);
  /** The code of the response. */
  const code = async (name: string): Promise<number | undefined> => {
    const answer = Promise.resolve(resolve(name));
    await clock.advance(10_000);
    return (await answer)?.response.rcode;
  };
  return { clock, stop, behaviours, exchanges, forwarder, resolve, code };
}

const [a, b] = ["192.0.2.1", "192.0.2.2"];

t.test("Forwarder caches responses and sends equal questions once", async (t) => {
  const { clock, exchanges, resolve, forwarder } = start(a);
  const waiting = [resolve("x.example"), resolve("X.example"), resolve("x.example", "10.1.0.2")];
  t.equal(forwarder.inFlight, 1);
  await clock.advance(10);
  for (const each of waiting) t.equal((await each)?.response.rcode, 0);
  const cached = resolve("x.example");
  t.notOk(cached instanceof Promise);
  await clock.advance(60_000);
  t.match(resolve("x.example"), { ttl: { ageSeconds: 60 } });
  t.same(exchanges, [`${a} udp`]);
  t.equal(forwarder.cachedResponses, 1);
  forwarder.clearCache();
  t.equal(forwarder.cachedResponses, 0);
  t.equal(clock.pending, 0);
});

t.test("Forwarder tries the next server after a failure, and prefers servers that answer", async (t) => {
  const { clock, behaviours, exchanges, code } = start(a, b);
  behaviours.set(a, "silent");
  t.equal(await code("one.example"), 0);
  t.same(exchanges.splice(0), [`${a} udp`, `${b} udp`]);
  behaviours.set(a, "failure");
  await clock.advance(2000);
  t.equal(await code("two.example"), 0, "ten seconds later the first server is tried first again");
  t.same(exchanges.splice(0), [`${a} udp`, `${b} udp`]);
  behaviours.set(b, "missing");
  t.equal(await code("three.example"), 3);
  behaviours.set(b, "refused");
  t.equal(await code("four.example"), 5, "the last response, when no server has a better one");
  t.equal(exchanges.splice(0).length, 4);
});

t.test("Forwarder tries servers that did not answer last", async (t) => {
  const { clock, behaviours, exchanges, resolve } = start(a, b);
  behaviours.set(a, "silent");
  const first = resolve("one.example");
  await clock.advance(2000);
  await first;
  exchanges.length = 0;
  const second = resolve("two.example");
  await clock.advance(10);
  await second;
  t.same(exchanges, [`${b} udp`]);
});

t.test("Forwarder falls back to TCP, and to queries without EDNS", async (t) => {
  const { behaviours, exchanges, code } = start(a);
  behaviours.set(a, "truncated");
  t.equal(await code("large.example"), 0);
  t.same(exchanges.splice(0), [`${a} udp`, `${a} tcp`]);
  behaviours.set(a, "no EDNS");
  t.equal(await code("old.example"), 0);
  t.same(exchanges, [`${a} udp`, `${a} udp without EDNS`]);
});

t.test(
  "Forwarder answers with expired records when no server answers, and waits before the next attempt",
  async (t) => {
    const { clock, behaviours, exchanges, resolve, code } = start(a);
    t.equal(await code("x.example"), 0);
    await clock.advance(400_000);
    behaviours.set(a, "silent");
    exchanges.length = 0;
    const stale = resolve("x.example");
    await clock.advance(4500);
    t.match(await stale, { response: { rcode: 0 }, ttl: { ttlMax: 30 } });
    t.equal(exchanges.length, 3, "three attempts");
    t.match(resolve("x.example"), { response: { rcode: 0 } });
    t.equal(await code("unknown.example"), undefined);
    t.equal(exchanges.length, 6);
    behaviours.set(a, "ok");
    t.equal(await code("unknown.example"), 0);
  },
);

t.test("Forwarder without servers answers nothing", async (t) => {
  const { code, exchanges } = start();
  t.equal(await code("x.example"), undefined);
  t.same(exchanges, []);
});

t.test("Forwarder bounds the questions in flight, of one client and of all", async (t) => {
  const { clock, resolve, forwarder } = start(a);
  const pending: Promise<ForwardedResponse | undefined>[] = [];
  for (let client = 0; client < 5; client++) {
    for (let i = 0; i < 300; i++) {
      const answer = resolve(`n${i}-${client}.example`, `10.1.0.${client}`);
      if (answer instanceof Promise) pending.push(answer);
      else t.equal(answer, undefined);
    }
    if (client === 0) t.equal(forwarder.inFlight, 256);
  }
  t.equal(forwarder.inFlight, 1024);
  await clock.advance(10);
  await Promise.all(pending);
  t.equal(forwarder.inFlight, 0);
  t.ok(resolve("again.example") instanceof Promise);
});

t.test("Forwarder gives up when it stops", async (t) => {
  const { clock, stop, behaviours, resolve, exchanges } = start(a);
  behaviours.set(a, "silent");
  const answer = resolve("x.example");
  stop.abort();
  await clock.advance(1500);
  t.equal(await answer, undefined);
  t.equal(exchanges.length, 1);
});
