/** Requests of a server with the embedded store, and with one member of etcd that syncs its files: CPU and latency. */
import { findEtcdProblem, startEtcd } from "../testing/storage/etcd-server.ts";
import type { Figures } from "./figures.ts";
import { Connection, closedLoop, expectStatus, quantile } from "./load.ts";
import { collectionOf, configMap } from "./objects.ts";
import { cpuMs, memory } from "./process.ts";
import { BenchServer } from "./server.ts";

const CONCURRENCIES = [1, 64] as const;
/** Fewer without concurrency, when each write waits for the disk. */
const countOf = (concurrency: number): number => (concurrency === 1 ? 300 : 2000);
const WARM_UP = 2000;

const collection = collectionOf(configMap);
const MERGE = { type: "application/merge-patch+json" };

export async function measureStores(figures: Figures, program: readonly string[]): Promise<void> {
  const problem = findEtcdProblem();
  if (problem !== undefined) return console.error(`Skipping section stores: ${problem}.`);
  for (const store of ["embedded", "etcd"] as const) {
    await using etcd = store === "etcd" ? await startEtcd(1, undefined, [], true) : undefined;
    await using server = await BenchServer.create(program, etcd?.urls.join());
    const start = await server.start();
    const pids = [server.pid, ...(etcd?.servers ?? []).map(({ pid }) => pid)];
    figures.addAll(`${store}: start; resident, empty`, { ms: start, "MiB svc": memory(server.pid).rss });
    using connection = new Connection(server.credentials);
    const verbs: Readonly<Record<string, (name: string) => Promise<void>>> = {
      CREATE: async (name) => expectStatus(await connection.request("POST", collection, configMap.create(name)), 201),
      GET: async (name) => expectStatus(await connection.request("GET", `${collection}/${name}`), 200),
      PATCH: async (name) => {
        const patch = { metadata: { annotations: { "example.com/bench": String(performance.now()) } } };
        expectStatus(await connection.request("PATCH", `${collection}/${name}`, patch, MERGE), 200);
      },
      DELETE: async (name) => expectStatus(await connection.request("DELETE", `${collection}/${name}`), 200),
    };
    for (const verb of Object.values(verbs)) await closedLoop(WARM_UP, 64, (index) => verb(`warm-${index}`));
    for (const concurrency of CONCURRENCIES) {
      for (const [title, verb] of Object.entries(verbs)) {
        const count = countOf(concurrency);
        const times: number[] = [];
        const before = pids.map(cpuMs);
        const began = performance.now();
        await closedLoop(count, concurrency, async (index) => {
          const sent = performance.now();
          await verb(`load-${concurrency}-${index}`);
          times.push(performance.now() - sent);
        });
        const seconds = (performance.now() - began) / 1000;
        const [svc = 0, other] = pids.map((pid, index) => ((cpuMs(pid) - before[index]!) * 1000) / count);
        figures.addAll(`${store}: ${title} of a ConfigMap, ${concurrency} at a time`, {
          "/s": count / seconds,
          "ms p50": quantile(times, 0.5),
          "ms p99": quantile(times, 0.99),
          "µs CPU svc": svc,
          ...(other === undefined ? {} : { "µs CPU etcd": other }),
        });
      }
    }
  }
}
