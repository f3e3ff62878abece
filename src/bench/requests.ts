/** Every verb on one object, for a small and a medium-sized object. */
import type { Figures } from "./figures.ts";
import { Connection, closedLoop, expectStatus, measureLoop, type RequestOptions } from "./load.ts";
import { collectionOf, configMap, pod, type Sample } from "./objects.ts";
import { BenchServer } from "./server.ts";

const CONCURRENCIES = [1, 16, 64] as const;
/** Fewer without concurrency, when each write waits for the disk. */
const countOf = (concurrency: number): number => (concurrency === 1 ? 400 : 2000);
const WARM_UP = 1500;

type Verb = (name: string, index: number) => Promise<void>;

export async function measureRequests(figures: Figures, program: readonly string[]): Promise<void> {
  await using server = await BenchServer.create(program);
  await server.start();
  using connection = new Connection(server.credentials);
  for (const sample of [configMap, pod]) {
    const verbs = verbsOf(connection, sample);
    await warmUp(verbs);
    for (const concurrency of CONCURRENCIES) {
      const options = { pid: server.pid, count: countOf(concurrency), concurrency };
      for (const [title, verb] of Object.entries(verbs)) {
        await measureLoop(figures, `${title} of a ${sample.title}`, options, (i) =>
          verb(`load-${concurrency}-${i}`, i),
        );
      }
    }
  }
}

/** CREATE with all controllers running. */
export async function measureControllers(figures: Figures, program: readonly string[]): Promise<void> {
  await using server = await BenchServer.create(program);
  await server.start("--embedded-controllers=*");
  using connection = new Connection(server.credentials);
  const verbs = verbsOf(connection, configMap);
  await warmUp(verbs);
  for (const [title, verb] of Object.entries(verbs)) {
    if (!["CREATE", "GET", "DELETE"].includes(title)) continue;
    const options = { pid: server.pid, count: 2000, concurrency: 64 };
    const what = `${title} of a ${configMap.title}, all controllers running`;
    await measureLoop(figures, what, options, (i) => verb(`load-${i}`, i));
  }
}

/** The verbs in the order of an object's life: create first, delete last. */
function verbsOf(connection: Connection, sample: Sample): Readonly<Record<string, Verb>> {
  const collection = collectionOf(sample);
  const patch = async (name: string, body: unknown, options: RequestOptions, query = ""): Promise<void> => {
    expectStatus(await connection.request("PATCH", `${collection}/${name}${query}`, body, options), 200);
  };
  const annotated = (value: string) => ({ metadata: { annotations: { "example.com/bench": value } } });
  return {
    CREATE: async (name) => {
      expectStatus(await connection.request("POST", collection, sample.create(name)), 201);
    },
    GET: async (name) => {
      expectStatus(await connection.request("GET", `${collection}/${name}`), 200);
    },
    PUT: async (name, i) => {
      const object = sample.create(name);
      const { metadata } = object as { readonly metadata: object };
      const changed = { ...object, metadata: { ...metadata, annotations: annotated(`put-${i}`).metadata.annotations } };
      expectStatus(await connection.request("PUT", `${collection}/${name}`, changed), 200);
    },
    "PATCH (json)": async (name, i) => {
      const operations = [{ op: "replace", path: "/metadata/annotations/example.com~1bench", value: `json-${i}` }];
      await patch(name, operations, { type: "application/json-patch+json" });
    },
    "PATCH (merge)": async (name, i) => {
      await patch(name, annotated(`merge-${i}`), { type: "application/merge-patch+json" });
    },
    "PATCH (strategic)": async (name, i) => {
      await patch(name, annotated(`strategic-${i}`), { type: "application/strategic-merge-patch+json" });
    },
    "PATCH (apply)": async (name, i) => {
      const body = { apiVersion: "v1", kind: sample.kind, ...annotated(`apply-${i}`) };
      await patch(name, body, { type: "application/apply-patch+yaml" }, "?fieldManager=bench&force=true");
    },
    DELETE: async (name) => {
      expectStatus(await connection.request("DELETE", `${collection}/${name}`), 200);
    },
  };
}

/** Runs each verb until its code is compiled. */
async function warmUp(verbs: Readonly<Record<string, Verb>>): Promise<void> {
  for (const verb of Object.values(verbs)) await closedLoop(WARM_UP, 32, (i) => verb(`warm-${i}`, i));
}
