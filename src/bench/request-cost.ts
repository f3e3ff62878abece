/** CPU time of a request with features on and off, by turns in one run. */
import type { Figures } from "./figures.ts";
import { Connection, closedLoop, expectStatus } from "./load.ts";
import { collectionOf, configMap } from "./objects.ts";
import { cpuMs } from "./process.ts";
import { BenchServer } from "./server.ts";

interface Feature {
  readonly name: string;
  readonly on: readonly string[];
  readonly off: readonly string[];
}

const features: readonly Feature[] = [
  {
    name: "fairness",
    on: ["--enable-priority-and-fairness=true"],
    off: ["--enable-priority-and-fairness=false"],
  },
];

/** Not a member of system:masters, whom some features exempt. */
const USER = "bench-user";
const CONCURRENCY = 16;
const WARM_UP = 3000;
const REQUESTS = 2000;
const ROUNDS = 5;

export async function measureRequestCost(figures: Figures, program: readonly string[]): Promise<void> {
  for (const { name, on, off } of features) {
    await using enabled = await Subject.start(program, on);
    await using disabled = await Subject.start(program, off);
    const subjects = [disabled, enabled];
    for (const verb of ["GET", "PUT"] as const) {
      for (const subject of subjects) await subject.run(verb, WARM_UP);
      const best = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
      for (let round = 0; round < ROUNDS; round++) {
        for (const [index, subject] of subjects.entries()) {
          best[index] = Math.min(best[index]!, await subject.run(verb, REQUESTS));
        }
      }
      const [without = 0, with_ = 0] = best;
      figures.addAll(`${verb} of a ConfigMap, ${name} off and on`, {
        "µs CPU off": without,
        "µs CPU on": with_,
        "× off": with_ / without,
      });
    }
  }
}

class Subject implements AsyncDisposable {
  readonly #server: BenchServer;
  readonly #connection: Connection;

  constructor(server: BenchServer, connection: Connection) {
    this.#server = server;
    this.#connection = connection;
  }

  static async start(program: readonly string[], flags: readonly string[]): Promise<Subject> {
    const server = await BenchServer.create(program);
    server.addUser(USER);
    await server.start(...flags);
    await server.allowEverything([USER]);
    const connection = new Connection({ ...server.credentials, token: USER });
    for (let index = 0; index < CONCURRENCY; index++) {
      expectStatus(await connection.request("POST", collectionOf(configMap), configMap.create(`cost-${index}`)), 201);
    }
    return new Subject(server, connection);
  }

  /** Returns microseconds of CPU time for each request. */
  async run(verb: "GET" | "PUT", count: number): Promise<number> {
    const { pid } = this.#server;
    const before = cpuMs(pid);
    await closedLoop(count, CONCURRENCY, async (index) => {
      const name = `cost-${index % CONCURRENCY}`;
      const body = verb === "PUT" ? { ...configMap.create(name), data: { index: String(index) } } : undefined;
      expectStatus(await this.#connection.request(verb, `${collectionOf(configMap)}/${name}`, body), 200);
    });
    return ((cpuMs(pid) - before) * 1000) / count;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection[Symbol.dispose]();
    await this.#server[Symbol.asyncDispose]();
  }
}
