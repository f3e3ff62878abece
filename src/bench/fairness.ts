/** What one client with 1,000 requests in flight does to the latency of others, with and without fairness. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Figures } from "./figures.ts";
import { Connection, closedLoop, expectStatus, type LoadResult, quantile } from "./load.ts";
import { collectionOf, configMap } from "./objects.ts";
import { BenchServer } from "./server.ts";

const IN_FLIGHT = 1000;
/** Others: clients with one request at a time. */
const OTHERS = 4;
/** Some seconds, so that the p99 has two hundred samples. */
const REQUESTS = 20_000;
/** Each measures the others alone and then with the flood; the figures are medians. */
const ROUNDS = 3;
/** A flood begins with connections and a burst of requests. */
const SETTLE_MS = 3000;
const OBJECTS = 500;
const FLOODER = "flooder";
/** The flood runs on the same cores: its client must not delay the measuring one, which would count as the server's. */
const FLOOD_NICE = 10;
const floodClient = fileURLToPath(new URL("./flood-client.ts", import.meta.url));

interface Round {
  readonly alone: LoadResult;
  readonly loaded: LoadResult;
}

interface Flood {
  readonly title: string;
  readonly method: string;
  readonly path: string;
}

const floods: readonly Flood[] = [
  { title: "GET", method: "GET", path: `${collectionOf(configMap)}/object-0` },
  { title: "LIST of 500 objects", method: "GET", path: collectionOf(configMap) },
  { title: "CREATE", method: "POST", path: collectionOf(configMap) },
];

export async function measureFairness(figures: Figures, program: readonly string[]): Promise<void> {
  for (const isFair of [true, false]) {
    await using server = await BenchServer.create(program);
    server.addUser(FLOODER);
    const others = Array.from({ length: OTHERS }, (_, index) => `other-${index}`);
    for (const user of others) server.addUser(user);
    await server.start(`--enable-priority-and-fairness=${isFair}`);
    await server.allowEverything([FLOODER, ...others]);
    await createObjects(server);
    const connections = others.map((token) => new Connection({ ...server.credentials, token }));
    const what = isFair ? "with fairness" : "without fairness";
    await measureOthers(connections);
    for (const flood of floods) {
      const rounds: Round[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const alone = await measureOthers(connections);
        rounds.push({ alone, loaded: await underFlood(server, flood, () => measureOthers(connections)) });
      }
      const middle = (read: (round: Round) => number): number => quantile(rounds.map(read), 0.5);
      figures.addAll(`others alone, ${what}`, {
        "ms p50": middle(({ alone }) => alone.p50Ms),
        "ms p99": middle(({ alone }) => alone.p99Ms),
      });
      figures.addAll(`others while one client has ${IN_FLIGHT} ${flood.title} in flight, ${what}`, {
        "ms p50": middle(({ loaded }) => loaded.p50Ms),
        "ms p99": middle(({ loaded }) => loaded.p99Ms),
        "× the p99 alone": middle(({ alone, loaded }) => loaded.p99Ms / alone.p99Ms),
      });
    }
    for (const connection of connections) connection[Symbol.dispose]();
  }
}

/** Creates the objects that are read. */
async function createObjects(server: BenchServer): Promise<void> {
  using admin = new Connection(server.credentials);
  for (let index = 0; index < OBJECTS; index++) {
    expectStatus(await admin.request("POST", collectionOf(configMap), configMap.create(`object-${index}`)), 201);
  }
}

async function measureOthers(connections: readonly Connection[]) {
  return await closedLoop(REQUESTS, connections.length, async (index) => {
    const connection = connections[index % connections.length]!;
    const path = `${collectionOf(configMap)}/object-${index % OBJECTS}`;
    expectStatus(await connection.request("GET", path), 200);
  });
}

async function underFlood<R>(server: BenchServer, { method, path }: Flood, measure: () => Promise<R>): Promise<R> {
  const words = [floodClient, server.credentials.server, FLOODER, method, path, String(IN_FLIGHT)];
  const client = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  if (client.pid !== undefined) setPriority(client.pid, FLOOD_NICE);
  try {
    await once(client.stdout, "data");
    await sleep(SETTLE_MS);
    return await measure();
  } finally {
    client.kill("SIGKILL");
    await once(client, "exit");
  }
}
