/**
 * Compares the agent's metrics with those recorded of kubelet 1.33: names, types, labels, and bounds of histograms
 * (`shared/oracles/recorded-agent/metrics-names.json`). `testdata/recorded-differences/agent-metrics.json` lists those
 * that the agent lacks, or has in another form, by reason.
 *
 *     SVC_RECORD=1 node src/acceptance/recorded-answers/agent-metrics.test.ts     removes metrics that agree now
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import t from "tap";
import { podUid } from "../../agent/pods/pod-fields.ts";
import { containerFamilies } from "../../agent/stats/container-families.ts";
import { createTestAgent } from "../../testing/agent/flag-harness.ts";
import { freePort } from "../../testing/std/free-port.ts";
import { shared } from "./agent-http.ts";
import { RecordedDifferences } from "./recorded-differences.ts";

interface RecordedMetric {
  readonly type: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly string[];
  readonly timestamped?: boolean;
}

interface FoundMetric {
  readonly type: string;
  readonly labels: Set<string>;
  readonly buckets: Set<string>;
  isTimed: boolean;
}

const TOKEN = "token-of-ali";
const file = `${shared}/oracles/recorded-agent/metrics-names.json`;

function parsePage(text: string): ReadonlyMap<string, FoundMetric> {
  const metrics = new Map<string, FoundMetric>();
  for (const line of text.split("\n")) {
    const [, name, type = ""] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (name !== undefined) metrics.set(name, { type, labels: new Set(), buckets: new Set(), isTimed: false });
    const [, sample = "", labels = "", time] = /^(\w+)(?:\{(.*)\})? \S+( \d+)?$/.exec(line) ?? [];
    const metric = metrics.get(sample) ?? metrics.get(sample.replace(/_(?:bucket|sum|count)$/, ""));
    if (metric === undefined) continue;
    metric.isTimed ||= time !== undefined;
    for (const [, label = "", value = ""] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      if (label === "le") metric.buckets.add(value);
      else metric.labels.add(label);
    }
  }
  return metrics;
}

function compare(recorded: RecordedMetric, found: FoundMetric | undefined): string | undefined {
  if (found === undefined) return "missing";
  if (found.type !== recorded.type) return `type ${found.type}, not ${recorded.type}`;
  const labels = [...found.labels].sort().join();
  if (labels !== recorded.labels.join()) return `labels ${labels}, not ${recorded.labels.join()}`;
  const buckets = [...found.buckets].join();
  if (buckets !== (recorded.buckets ?? []).join()) return `buckets ${buckets}, not ${recorded.buckets?.join()}`;
  if (found.isTimed !== (recorded.timestamped ?? false)) return found.isTimed ? "with a time" : "without a time";
  return undefined;
}

async function get(port: number, path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const headers = { authorization: `Bearer ${TOKEN}` };
  const options = { host: "127.0.0.1", port, path, headers, agent: false, rejectUnauthorized: false };
  const sent = request(options, (response) => {
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => {
      text += chunk;
    });
    response.on("end", () => resolve(text));
  });
  sent.on("error", reject);
  sent.end();
  return await promise;
}

/** The files of one cgroup, for every controller. */
function writeCgroup(hierarchy: string, path: string, process?: number): void {
  const files: Readonly<Record<string, string>> = {
    "cpuacct/cpuacct.usage": "1000000000\n",
    "cpuacct/cpuacct.stat": "user 60\nsystem 40\n",
    "cpuacct/cgroup.procs": process === undefined ? "" : `${process}\n`,
    "cpu/cpu.stat": "nr_periods 3\nnr_throttled 1\nthrottled_time 1000\n",
    "cpu/cpu.shares": "2\n",
    "cpu/cpu.cfs_period_us": "100000\n",
    "cpu/cpu.cfs_quota_us": "5000\n",
    "memory/memory.usage_in_bytes": "4096\n",
    "memory/memory.max_usage_in_bytes": "8192\n",
    "memory/memory.failcnt": "0\n",
    "memory/memory.stat": "total_rss 4096\ntotal_inactive_file 0\npgfault 1\ntotal_pgfault 1\n",
    "memory/memory.limit_in_bytes": "8192\n",
    "pids/pids.current": "1\n",
    "pids/pids.max": "max\n",
    "blkio/blkio.throttle.io_service_bytes": "8:0 Read 1\n8:0 Write 1\n",
    "blkio/blkio.throttle.io_serviced": "8:0 Read 1\n8:0 Write 1\n",
  };
  for (const [name, text] of Object.entries(files)) {
    const [controller = "", own = ""] = name.split("/");
    mkdirSync(join(hierarchy, controller, path), { recursive: true });
    writeFileSync(join(hierarchy, controller, path, own), text);
  }
}

t.test("metrics of the agent have the names, types, labels and bounds of kubelet 1.33", async (t) => {
  if (!existsSync(file)) {
    t.comment("Skipped: shared/ is not present");
    return;
  }
  const port = await freePort();
  await using agent = await createTestAgent("flag", {
    ...{ "enable-server": "true", address: "127.0.0.1", port: String(port) },
    ...{ "authentication-token-webhook": "true", "authorization-mode": "Webhook" },
  });
  agent.api.tokens.set(TOKEN, "ali");
  agent.api.allowed.add("ali get nodes/metrics");
  const hierarchy = join(agent.directory, "cgroup");
  writeCgroup(hierarchy, "/");
  await agent.start();
  const readinessProbe = { exec: { command: ["true"] }, periodSeconds: 1 };
  agent.fake.execs.set("true", { exitCode: 0 });
  const container = { name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent", readinessProbe } as const;
  const volumes = [{ name: "v", emptyDir: {} }];
  agent.fake.fail("startContainer");
  const pod = agent.createPod("web", { containers: [container], volumes });
  agent.createPod("waiting", { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "absent" } }] });
  await agent.untilRunning("web");
  await agent.until("a probe", () => agent.fake.calls.some(({ method }) => method === "execSync"));
  const path = `/kubepods/besteffort/pod${podUid(pod)}`;
  writeCgroup(hierarchy, path);
  for (const id of agent.fake.sandboxes.keys()) writeCgroup(hierarchy, join(path, id), process.pid);
  for (const id of agent.fake.containers.keys()) writeCgroup(hierarchy, join(path, id), process.pid);

  const pages = JSON.parse(readFileSync(file, "utf8")) as Readonly<
    Record<string, { readonly metrics: Readonly<Record<string, RecordedMetric>> }>
  >;
  const differences = new RecordedDifferences("agent-metrics");
  let count = 0;
  for (const [page, { metrics }] of Object.entries(pages)) {
    // The second request finds what the first one was counted in.
    await get(port, page);
    const found = parsePage(await get(port, page));
    for (const [name, recorded] of Object.entries(metrics)) {
      count++;
      const difference = compare(recorded, found.get(name));
      // Figures of network interfaces are there only on a machine that has one.
      const known = containerFamilies.find((family) => family.name === name && name.startsWith("container_network"));
      const isKnown = difference === "missing" && known?.type === recorded.type;
      differences.add(`${page} ${name}`, page === "/metrics/cadvisor" && isKnown ? undefined : difference);
    }
  }
  t.comment(`${count - differences.count}/${count} metrics`);
  t.same(differences.unlisted(), []);
  t.same(differences.resolved(), [], "every listed metric differs (SVC_RECORD=1 removes the others)");
});
