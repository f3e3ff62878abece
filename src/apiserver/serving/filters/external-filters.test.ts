/** Filters that only requests over the network pass. */
import { PassThrough } from "node:stream";
import t from "tap";
import type { Filter, Handler, HttpResponse, Peer } from "../../../http/message.ts";
import { makeRequest } from "../../../http/request.ts";
import { bytesResponse, textResponse } from "../../../http/respond.ts";
import { AbortedStreamError } from "../../../http/server/write-body.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { withProbabilisticGoaway } from "./goaway.ts";
import { RetryAfterOnShutdown } from "./retry-after.ts";
import { withThrottle } from "./throttle.ts";
import { WatchTermination } from "./watch-termination.ts";

const peer = (protocol: Peer["protocol"]): Peer => ({
  address: "",
  port: 1,
  encrypted: true,
  certificates: [],
  protocol,
});
const request = (path: string, from: Peer = peer("h2")) => makeRequest({ path, peer: from });

async function* pieces(count: number, size: number, ended = (): void => {}): AsyncGenerator<Uint8Array> {
  try {
    for (let index = 0; index < count; index++) yield Buffer.alloc(size);
  } finally {
    ended();
  }
}

function streamOf(response: HttpResponse): AsyncIterator<Uint8Array> {
  return (response.body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
}

t.test("withProbabilisticGoaway() closes a fraction of HTTP/2 connections", async (t) => {
  const fractions = [0.019, 0.02, 0.001];
  const random = { bytes: () => new Uint8Array(), fraction: () => fractions.shift() ?? 0 };
  const handler = withProbabilisticGoaway(0.02, random)(async () => textResponse(200, "x"));
  const closes = async (from: Peer) => (await handler(request("/", from))).headers.connection === "close";
  t.equal(await closes(peer("h2")), true);
  t.equal(await closes(peer("h2")), false);
  t.equal(await closes(peer("http/1.1")), false);
  t.equal(await closes(peer("h2")), true);
  const never: Handler = async () => textResponse(200, "x");
  t.equal(withProbabilisticGoaway(0, random)(never), never);
});

t.test("withThrottle() limits the streams of one connection together, and no other responses", async (t) => {
  const clock = new FakeClock();
  const handler = withThrottle(
    1000,
    clock,
  )(async ({ path }) =>
    path === "/whole" ? bytesResponse(200, "x", Buffer.alloc(1_000_000)) : bytesResponse(200, "x", pieces(3, 1500)),
  );
  const from = peer("h2");
  const read = async (source: AsyncIterator<Uint8Array>, times: number[]): Promise<void> => {
    for (let step = await source.next(); step.done !== true; step = await source.next()) {
      times.push(clock.monotonic());
    }
  };
  const times: number[][] = [[], [], []];
  const reading = [from, from, peer("h2")].map(async (each, index) =>
    read(streamOf(await handler(request("/stream", each))), times[index]!),
  );
  await clock.advance(20_000);
  await Promise.all(reading);
  const both = [...times[0]!, ...times[1]!];
  t.equal(both.length, 12, "pieces are cut to what a second may take");
  t.equal(Math.max(...both), 8500, "9000 bytes; the last 500 need no delay");
  t.equal(Math.max(...times[2]!), 4000, "another connection has its own rate");
  t.ok((await handler(request("/whole", from))).body instanceof Uint8Array);
  t.equal(clock.pending, 0);
});

t.test("WatchTermination.terminate() ends streams in their order, spread over the grace period", async (t) => {
  const clock = new FakeClock();
  const watchTermination = new WatchTermination(clock);
  const never = new Promise<never>(() => {});
  let returned = 0;
  const silent = (): AsyncIterable<Uint8Array> => ({
    [Symbol.asyncIterator]: () => ({
      next: () => never,
      return: async () => {
        returned++;
        return { done: true, value: undefined };
      },
    }),
  });
  const handler = watchTermination.filter(async () => bytesResponse(200, "x", silent()));
  const ended: number[] = [];
  for (let index = 0; index < 100; index++) {
    const stream = streamOf(await handler(request("/watch")));
    void stream.next().then(({ done }) => done === true && ended.push(index));
  }
  const ending = watchTermination.terminate(10_000);
  await clock.advance(100);
  t.equal(ended.length, 30, "at least 200 a second");
  await clock.advance(1000);
  await ending;
  t.same(ended, [...ended.keys()], "the first first");
  t.equal(ended.length, 100);
  t.equal(returned, 100, "their sources are closed");
  for (let index = 0; index < 5; index++) await handler(request("/watch"));
  await watchTermination.terminate(0);
  t.equal(returned, 105);
});

t.test("WatchTermination.terminate() resets logs, and breaks switched connections", async (t) => {
  const watchTermination = new WatchTermination(new FakeClock());
  const log = watchTermination.filter(async () => {
    return { ...bytesResponse(200, "x", pieces(2, 1)), resetAtShutdown: true as const };
  });
  const [open, whole] = [streamOf(await log(request("/"))), streamOf(await log(request("/")))];
  await open.next();
  for (let step = 0; step < 3; step++) await whole.next();
  const connection = new PassThrough();
  const switched = await watchTermination.filter(async () => ({ status: 101, headers: {}, body: connection }))(
    request("/"),
  );
  t.equal(switched.body, connection, "bytes pass without steps between");
  await watchTermination.terminate(0);
  await t.rejects(open.next(), AbortedStreamError);
  t.match(await whole.next(), { done: true }, "one that has ended is complete");
  t.equal(connection.destroyed, true);
});

t.test("WatchTermination passes on chunks and errors of streams, and stops tracking ended ones", async (t) => {
  const watchTermination = new WatchTermination(new FakeClock());
  let ended = 0;
  const answer = (body: AsyncIterable<Uint8Array>) =>
    watchTermination.filter(async () => bytesResponse(200, "x", body))(request("/"));
  const whole = streamOf(await answer(pieces(2, 1, () => ended++)));
  t.match(
    [await whole.next(), await whole.next(), await whole.next()],
    [{ done: false }, { done: false }, { done: true }],
  );
  const left = streamOf(await answer(pieces(2, 1, () => ended++)));
  await left.next();
  await left.return?.();
  t.match(await left.next(), { done: true });
  const broken = streamOf(
    await answer(
      (async function* () {
        yield* pieces(0, 1);
        throw new Error("broken");
      })(),
    ),
  );
  await t.rejects(broken.next(), /broken/);
  t.equal(ended, 2);
  await watchTermination.terminate(0);
});

t.test(
  "RetryAfterOnShutdown.begin() rejects new requests except health checks, and waits for requests in flight",
  async (t) => {
    const retryAfter = new RetryAfterOnShutdown();
    const release = Promise.withResolvers<void>();
    const filter: Filter = retryAfter.filter;
    const handler = filter(async ({ path }) => {
      if (path === "/slow") await release.promise;
      return textResponse(200, "x");
    });
    const slow = handler(request("/slow"));
    let drained = false;
    const beginning = retryAfter.begin().then(() => {
      drained = true;
    });
    const refused = await handler(request("/api/v1/pods"));
    t.match(refused, { status: 429, headers: { "retry-after": "5", connection: "close" } });
    t.equal(String(refused.body), "The apiserver is shutting down, please try again later.\n");
    for (const path of ["/readyz", "/livez/ping", "/healthz", "/metrics"])
      t.match(await handler(request(path)), { status: 200 });
    t.equal(drained, false);
    release.resolve();
    t.match(await slow, { status: 200 });
    await beginning;
    await new RetryAfterOnShutdown().begin();
  },
);
