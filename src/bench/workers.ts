/** Servers with one thread and with two: requests and watch deliveries, by the CPU time of the busiest thread. */
import { readdirSync, readFileSync } from "node:fs";
import type { Figures } from "./figures.ts";
import { Connection, closedLoop, expectStatus } from "./load.ts";
import { collectionOf, configMap } from "./objects.ts";
import { cpuMs, memory } from "./process.ts";
import { BenchServer } from "./server.ts";
import { Watches } from "./watches.ts";

const COUNTS = [1, 2] as const;
/** So many that the kernel gives each thread about as many. */
const CONNECTIONS = 32;
const CONCURRENCY = 64;
const OBJECTS = 100;
/** For each thread, whose code V8 compiles on its own. */
const WARM_UP = 4000;
const REQUESTS = 4000;
const WATCHERS = 200;
const CHANGES = 300;

const collection = collectionOf(configMap);

export async function measureWorkers(figures: Figures, program: readonly string[]): Promise<void> {
  for (const workers of COUNTS) {
    await using server = await BenchServer.create(program);
    await server.start(`--workers=${workers}`);
    const { rss, pss } = memory(server.pid);
    figures.addAll(`workers ${workers}: resident, empty`, { "MiB RSS": rss, "MiB PSS": pss });
    const connections = Array.from({ length: CONNECTIONS }, () => new Connection(server.credentials));
    const connection = (index: number): Connection => connections[index % CONNECTIONS]!;
    for (let i = 0; i < OBJECTS; i++)
      expectStatus(await connection(i).request("POST", collection, configMap.create(`object-${i}`)), 201);
    const verbs: Readonly<Record<string, (index: number) => Promise<void>>> = {
      GET: async (index) =>
        expectStatus(await connection(index).request("GET", `${collection}/object-${index % OBJECTS}`), 200),
      PATCH: (index) => touch(connection(index), index),
    };
    for (const [verb, job] of Object.entries(verbs)) {
      await closedLoop(WARM_UP * workers, CONCURRENCY, job);
      await measure(
        figures,
        `workers ${workers}: ${verb}, ${CONCURRENCY} at a time`,
        server.pid,
        REQUESTS,
        async () => {
          await closedLoop(REQUESTS, CONCURRENCY, job);
        },
      );
    }
    using watches = new Watches(server, WATCHERS, WATCHERS / CONNECTIONS);
    await watches.start(connection(0));
    const deliveries = CHANGES * WATCHERS;
    await measure(
      figures,
      `workers ${workers}: deliveries to ${WATCHERS} watches`,
      server.pid,
      deliveries,
      async () => {
        const expected = watches.delivered + deliveries;
        await closedLoop(CHANGES, 1, (index) => touch(connection(index), index));
        await watches.untilDelivered(expected);
      },
    );
    for (const each of connections) each[Symbol.dispose]();
  }
}

async function touch(connection: Connection, index: number): Promise<void> {
  const patch = { metadata: { annotations: { "example.com/bench": String(performance.now()) } } };
  const path = `${collection}/object-${index % OBJECTS}`;
  expectStatus(await connection.request("PATCH", path, patch, { type: "application/merge-patch+json" }), 200);
}

/**
 * The busiest thread bounds the rate of a server that has a core for each thread: on a machine without a core for the
 * clients, the rate itself shows less.
 */
async function measure(
  figures: Figures,
  what: string,
  pid: number,
  count: number,
  run: () => Promise<void>,
): Promise<void> {
  const before = threadTimes(pid);
  const all = cpuMs(pid);
  const began = performance.now();
  await run();
  const seconds = (performance.now() - began) / 1000;
  const after = threadTimes(pid);
  const busiest = Math.max(...[...after].map(([id, ms]) => ms - (before.get(id) ?? 0)));
  figures.addAll(what, {
    "/s": count / seconds,
    "µs CPU each": ((cpuMs(pid) - all) * 1000) / count,
    "µs of the busiest thread": (busiest * 1000) / count,
  });
}

/** CPU milliseconds by thread. */
function threadTimes(pid: number): ReadonlyMap<string, number> {
  return new Map(
    readdirSync(`/proc/${pid}/task`).map((id) => {
      const [nanoseconds = "0"] = readFileSync(`/proc/${pid}/task/${id}/schedstat`, "utf8").split(" ");
      return [id, Number(nanoseconds) / 1e6];
    }),
  );
}
