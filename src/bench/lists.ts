/** Lists of 1,000 and 10,000 objects, whole and in pages; and memory of a server with many objects. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Figures } from "./figures.ts";
import { Connection, closedLoop, expectStatus, measureLoop, type RequestOptions } from "./load.ts";
import { collectionOf, configMap } from "./objects.ts";
import { memory } from "./process.ts";
import { BenchServer } from "./server.ts";

const PAGE = 500;
const TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1";
const METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

export async function measureLists(figures: Figures, program: readonly string[]): Promise<void> {
  await using server = await BenchServer.create(program);
  await server.start();
  using connection = new Connection(server.credentials);
  let present = 0;
  for (const [objects, count] of [
    [1000, 30],
    [10_000, 10],
  ] as const) {
    await fill(connection, present, objects);
    present = objects;
    const options = { pid: server.pid, count, concurrency: 1 };
    const measure = async (how: string, more: RequestOptions, path: string = collection): Promise<void> => {
      await list(connection, path, more);
      await measureLoop(figures, `LIST of ${objects}${how}`, options, () => list(connection, path, more));
    };
    await measure("", {});
    await measure(", gzip", { encoding: "gzip" });
    await measure(", protobuf", { accept: "application/vnd.kubernetes.protobuf" });
    await measure(", table", { accept: TABLE });
    await measure(", metadata", { accept: METADATA });
    await measure(", label selector that fits none", {}, `${collection}?labelSelector=app%3Dweb`);
    await measureLoop(figures, `LIST of ${objects} in pages of ${PAGE}`, options, () => listPages(connection));
  }
}

const MANY = [10_000, 100_000] as const;
const LISTS = 5;

export async function measureMemory(figures: Figures, program: readonly string[]): Promise<void> {
  await using server = await BenchServer.create(program);
  await server.start();
  await sleep(SETTLE_MS);
  figures.add("resident, empty", memory(server.pid).rss, "MiB");
  let present = 0;
  for (const objects of MANY) {
    using connection = new Connection(server.credentials);
    await fill(connection, present, objects);
    present = objects;
    await sleep(SETTLE_MS);
    figures.add(`resident with ${objects} ConfigMaps of 1 KB`, memory(server.pid).rss, "MiB");
    for (let i = 0; i < LISTS; i++) await list(connection, collection, {});
    await sleep(SETTLE_MS);
    figures.add(`  after ${LISTS} lists of them`, memory(server.pid).rss, "MiB");
  }
  await server.stop();
  figures.add(`start to ready with ${present} objects`, await server.start(), "ms");
  await sleep(SETTLE_MS);
  figures.add("  resident then", memory(server.pid).rss, "MiB");
}

/** Time for garbage collection. */
const SETTLE_MS = 3000;
const collection = collectionOf(configMap);

async function fill(connection: Connection, from: number, to: number): Promise<void> {
  await closedLoop(to - from, 64, async (i) => {
    expectStatus(await connection.request("POST", collection, configMap.create(`object-${from + i}`)), 201);
  });
}

async function list(connection: Connection, path: string, options: RequestOptions): Promise<void> {
  expectStatus(await connection.request("GET", path, undefined, { ...options, ignoreBody: true }), 200);
}

async function listPages(connection: Connection): Promise<void> {
  let next = "";
  do {
    let head = "";
    const onData = (chunk: Buffer): void => {
      if (head.length < HEAD_BYTES) head += chunk.toString("latin1", 0, HEAD_BYTES);
    };
    const query = next === "" ? "" : `&continue=${encodeURIComponent(next)}`;
    expectStatus(await connection.request("GET", `${collection}?limit=${PAGE}${query}`, undefined, { onData }), 200);
    next = /"continue":"([^"]*)"/.exec(head)?.[1] ?? "";
  } while (next !== "");
}

/** Enough for the list's metadata, which precede the items. */
const HEAD_BYTES = 1024;
