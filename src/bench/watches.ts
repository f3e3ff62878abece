/** Latency and rate of events for 1, 100 and 1,000 watches. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Figures } from "./figures.ts";
import { Connection, closedLoop, expectStatus, quantile } from "./load.ts";
import { collectionOf, configMap } from "./objects.ts";
import { cpuMs } from "./process.ts";
import { BenchServer } from "./server.ts";

const WATCHERS = [1, 100, 1000] as const;
/** Streams for each connection: every server allows as many. */
const PER_CONNECTION = 100;
const OBJECTS = 16;
const QUIET_MS = 1000;
/** Changes per second of the latency measurement: few, so that no queue builds up. */
const PACED_PER_SECOND = 10;
const PACED = 40;

const collection = collectionOf(configMap);
const MARK = '"example.com/sent":"';
const TIME_LENGTH_MAX = 24;
/** A longer delay means that the timestamp was cut by the end of a chunk. */
const DELAY_MS_MAX = 60_000;
const LINE_END = 10;

export async function measureWatches(figures: Figures, program: readonly string[]): Promise<void> {
  await using server = await BenchServer.create(program);
  await server.start();
  using writer = new Connection(server.credentials);
  for (let i = 0; i < OBJECTS; i++) {
    expectStatus(await writer.request("POST", collection, configMap.create(`object-${i}`)), 201);
  }
  for (const watchers of WATCHERS) {
    using watches = new Watches(server, watchers);
    await watches.start(writer);
    await measureDelay(figures, writer, watches);
    await measureRate(figures, writer, watches, server.pid);
  }
}

async function measureDelay(figures: Figures, writer: Connection, watches: Watches): Promise<void> {
  watches.delays = [];
  const expected = watches.delivered + PACED * watches.size;
  for (let i = 0; i < PACED; i++) {
    const at = performance.now();
    await touch(writer, i % OBJECTS);
    await sleep(Math.max(0, 1000 / PACED_PER_SECOND - (performance.now() - at)));
  }
  await watches.untilDelivered(expected);
  figures.addAll(`watch, ${watches.size}: from the request for a change to its event`, {
    "ms p50": quantile(watches.delays, 0.5),
    "ms p99": quantile(watches.delays, 0.99),
  });
  watches.delays = undefined;
}

async function measureRate(figures: Figures, writer: Connection, watches: Watches, pid: number): Promise<void> {
  const changes = Math.max(200, Math.min(2000, Math.floor(100_000 / watches.size)));
  const expected = watches.delivered + changes * watches.size;
  const before = cpuMs(pid);
  const began = performance.now();
  await closedLoop(changes, OBJECTS, (i) => touch(writer, i % OBJECTS));
  await watches.untilDelivered(expected);
  const seconds = (performance.now() - began) / 1000;
  const deliveries = changes * watches.size;
  figures.addAll(`watch, ${watches.size}: deliveries, ${OBJECTS} changes at a time`, {
    "/s": deliveries / seconds,
    "µs CPU each, the write included": ((cpuMs(pid) - before) * 1000) / deliveries,
  });
}

/** Patches an object with the time of the request as annotation. */
async function touch(writer: Connection, object: number): Promise<void> {
  const patch = { metadata: { annotations: { "example.com/sent": String(performance.now()) } } };
  const type = "application/merge-patch+json";
  expectStatus(await writer.request("PATCH", `${collection}/object-${object}`, patch, { type }), 200);
}

/** Watches of all objects. They count events and, while `delays` is an array, record delays. */
export class Watches implements Disposable {
  readonly size: number;
  delivered = 0;
  delays: number[] | undefined;
  readonly #connections: Connection[] = [];
  readonly #perConnection: number;
  #error: unknown;

  constructor(server: BenchServer, size: number, perConnection = PER_CONNECTION) {
    this.size = size;
    this.#perConnection = perConnection;
    for (let i = 0; i < size; i += perConnection) this.#connections.push(new Connection(server.credentials));
  }

  /** Resolves when every watch has received an event. */
  async start(writer: Connection): Promise<void> {
    const list = JSON.parse((await writer.request("GET", `${collection}?limit=1`)).body);
    const path = `${collection}?watch=true&resourceVersion=${list.metadata.resourceVersion}`;
    for (let i = 0; i < this.size; i++) {
      const connection = this.#connections[Math.floor(i / this.#perConnection)]!;
      const onData = (chunk: Buffer): void => this.#onChunk(chunk);
      void connection.request("GET", path, undefined, { onData }).catch((error: unknown) => {
        this.#error = error;
      });
    }
    await sleep(QUIET_MS);
    await touch(writer, 0);
    await this.untilDelivered(this.size);
  }

  /** Resolves when `count` events have arrived. */
  async untilDelivered(count: number): Promise<void> {
    const deadline = performance.now() + 60_000;
    while (this.delivered < count) {
      if (performance.now() > deadline) {
        throw new Error(`Only ${this.delivered} of ${count} events arrived`, { cause: this.#error });
      }
      await sleep(1);
    }
  }

  /** Counts line ends instead of parsing events, which would cost more CPU than the server uses. */
  #onChunk(chunk: Buffer): void {
    const now = performance.now();
    for (let at = chunk.indexOf(LINE_END); at !== -1; at = chunk.indexOf(LINE_END, at + 1)) this.delivered++;
    if (this.delays === undefined) return;
    for (let at = chunk.indexOf(MARK); at !== -1; at = chunk.indexOf(MARK, at + MARK.length)) {
      const sent = Number.parseFloat(chunk.toString("latin1", at + MARK.length, at + MARK.length + TIME_LENGTH_MAX));
      if (now >= sent && now - sent < DELAY_MS_MAX) this.delays.push(now - sent);
    }
  }

  [Symbol.dispose](): void {
    for (const connection of this.#connections) connection[Symbol.dispose]();
  }
}
