/**
 * Run by `make bench` (`ARGS="--only requests,lists"`): starts servers with temporary data directories and measures
 * them from outside.
 *   node src/bench/bench.ts [--only SECTION,…] [--program sources|bundle|binary] [--json]
 *     [--idle-seconds 30] [--pods 20]
 * Sections: start, requests, controllers, controller-memory, scheduler, deployment, lists, watches, memory, cluster,
 * agent, eviction, placement, dns, streams, separate-streams, tunnel, logs, scrapes, request-cost, fairness,
 * encryption, workers, stores.
 * On a shared machine CPU time and ratios are more reliable than rates.
 */
import { parseArgs } from "node:util";
import { findMissingRequirement, programs } from "../acceptance/cluster/cluster.ts";
import { measureAgent } from "./agent.ts";
import { measureCluster } from "./cluster.ts";
import { measureControllerMemory } from "./controller-memory.ts";
import { measureDeployment } from "./deployment.ts";
import { measureDns } from "./dns.ts";
import { measureEncryption } from "./encryption.ts";
import { measureEviction } from "./eviction.ts";
import { measureFairness } from "./fairness.ts";
import { Figures } from "./figures.ts";
import { measureLists, measureMemory } from "./lists.ts";
import { measureLogs } from "./logs.ts";
import { measurePlacement } from "./placement.ts";
import { measureRequestCost } from "./request-cost.ts";
import { measureControllers, measureRequests } from "./requests.ts";
import { measureScheduler } from "./scheduler.ts";
import { measureScrapes } from "./scrapes.ts";
import { measureSeparateStreams } from "./separate-streams.ts";
import { measureStart } from "./start.ts";
import { measureStores } from "./stores.ts";
import { measureStreams } from "./streams.ts";
import { measureTunnel } from "./tunnel.ts";
import { measureWatches } from "./watches.ts";
import { measureWorkers } from "./workers.ts";

const { values: options } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    program: { type: "string", default: "bundle" },
    "idle-seconds": { type: "string", default: "30" },
    pods: { type: "string", default: "20" },
  },
});

type Measure = (figures: Figures, program: readonly string[]) => Promise<void>;

const sections: Readonly<Record<string, Measure>> = {
  start: measureStart,
  requests: measureRequests,
  controllers: measureControllers,
  "controller-memory": measureControllerMemory,
  scheduler: measureScheduler,
  deployment: measureDeployment,
  lists: measureLists,
  watches: measureWatches,
  memory: measureMemory,
  cluster: async (figures, program) => {
    const missing = findMissingRequirement();
    const { pods, "idle-seconds": idleSeconds } = options;
    if (missing !== undefined) console.error(`Skipping section cluster: ${missing}.`);
    else await measureCluster(figures, program, { idleSeconds: Number(idleSeconds), pods: Number(pods) });
  },
  agent: measureAgent,
  eviction: measureEviction,
  placement: measurePlacement,
  dns: measureDns,
  streams: measureStreams,
  "separate-streams": measureSeparateStreams,
  tunnel: measureTunnel,
  logs: measureLogs,
  scrapes: measureScrapes,
  "request-cost": measureRequestCost,
  fairness: measureFairness,
  encryption: measureEncryption,
  workers: measureWorkers,
  stores: measureStores,
};

const wanted = options.only === "" ? Object.keys(sections) : options.only.split(",");
const unknown = wanted.find((name) => !Object.hasOwn(sections, name));
if (unknown !== undefined) {
  console.error(`Unknown section ${JSON.stringify(unknown)}; allowed: ${Object.keys(sections).join(", ")}`);
  process.exitCode = 2;
} else if (!Object.hasOwn(programs, options.program)) {
  console.error(`Unknown --program ${JSON.stringify(options.program)}; allowed: ${Object.keys(programs).join(", ")}`);
  process.exitCode = 2;
} else {
  const figures = new Figures(options.program, options.json);
  for (const name of wanted) await sections[name]!(figures, programs[options.program as keyof typeof programs]);
  figures.finish();
}
