/**
 * Objects that are stored validly and cost controllers the most: the longest turn of the event loop of a server with
 * embedded controllers and a small heap, and its memory, while they process them. `SVC_ATTACKS=all` (`make attacks`)
 * stores all of them and prints a table; otherwise some.
 */
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { type Answer, type MeasuredServer, startMeasuredServer } from "./measured-server.ts";

const CORE = "/api/v1/namespaces/default";
const APPS = "/apis/apps/v1/namespaces/default";
const BATCH = "/apis/batch/v1/namespaces/default";
/** Several times what is measured: a quadratic algorithm takes ten times this. */
const STALL_MS_MAX = 800;
const all = process.env.SVC_ATTACKS === "all";
/** Until the controllers have processed an object; of the sample they process several at once. */
const SETTLE_MS = all ? 5000 : 50;
/** A service and its pod. */
const SAMPLE = [2, 5] as const;

interface ControllerCase {
  readonly what: string;
  readonly path: string;
  readonly body: object;
  readonly verb?: "POST" | "PATCH";
}

function many<T>(count: number, create: (index: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, index) => create(index));
}

function members<T>(count: number, create: (index: number) => readonly [string, T]): Readonly<Record<string, T>> {
  return Object.fromEntries(many(count, create));
}

function podTemplate(labels: Readonly<Record<string, string>>): object {
  return { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } };
}

function service(name: string, port: (index: number) => object): ControllerCase {
  const ports = many(8000, (index) => ({ name: `p${index}`, port: index + 1, ...port(index) }));
  const body = { metadata: { name }, spec: { clusterIP: "None", selector: { a: "b" }, ports } };
  return { what: `service ${name} of 8,000 ports`, path: `${CORE}/services`, body };
}

function quota(name: string, hard: Readonly<Record<string, string>>): ControllerCase {
  const body = { metadata: { name }, spec: { hard } };
  return { what: `quota of 20,000 ${name}`, path: `${CORE}/resourcequotas`, body };
}

const namedPorts = many(8000, (index) => ({ name: `t${index}`, containerPort: index + 1 }));
const labels = members(10_000, (index) => [`k${index}`, "v"] as const);
const claimSpec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1" } } };
const requirements = many(6000, (index) => ({ key: `k${index}`, operator: "DoesNotExist" }));
const limits = members(6000, (index) => [`example.com/r${index}`, "1"] as const);
const spreadConstraint = (index: number) => ({
  maxSkew: 1,
  topologyKey: `k${index}`,
  whenUnsatisfiable: index % 2 === 0 ? "DoNotSchedule" : "ScheduleAnyway",
  labelSelector: { matchLabels: { a: "b" } },
});
const topologyLabels = members(4000, (index) => [`k${index}`, "v"] as const);
const completions = { completionMode: "Indexed", completions: 100_000, parallelism: 100_000 };
const jobTemplate = { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } };
const readyStatus = {
  phase: "Running",
  podIP: "10.0.0.9",
  podIPs: [{ ip: "10.0.0.9" }],
  conditions: [{ type: "Ready", status: "True" }],
};

const cases: readonly ControllerCase[] = [
  service("numbered", () => ({})),
  service("other", () => ({})),
  service("named", (index) => ({ targetPort: `t${index}` })),
  {
    what: "pod of 8,000 named ports",
    path: `${CORE}/pods`,
    body: {
      metadata: { name: "ports", labels: { a: "b" } },
      spec: { nodeName: "n", containers: [{ name: "c", image: "i", ports: namedPorts }] },
    },
  },
  {
    what: "pod of 8,000 named ports is ready",
    path: `${CORE}/pods/ports/status`,
    body: { status: readyStatus },
    verb: "PATCH",
  },
  {
    what: "deployment of 3,000 pods",
    path: `${APPS}/deployments`,
    body: {
      metadata: { name: "d" },
      spec: { replicas: 3000, selector: { matchLabels: { a: "d" } }, template: podTemplate({ a: "d" }) },
    },
  },
  {
    what: "pod of 4,000 spread constraints, and a node with their labels",
    path: `${CORE}/pods`,
    body: {
      metadata: { name: "spread", labels: { a: "b" } },
      spec: { containers: [{ name: "c", image: "i" }], topologySpreadConstraints: many(4000, spreadConstraint) },
    },
  },
  {
    what: "budget of 6,000 expressions over 3,000 pods",
    path: "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    body: { metadata: { name: "b" }, spec: { minAvailable: 1, selector: { matchExpressions: requirements } } },
  },
  {
    what: "deployment scaled to none",
    path: `${APPS}/deployments/d`,
    body: { spec: { replicas: 0 } },
    verb: "PATCH",
  },
  {
    what: "deployment of 10,000 labels",
    path: `${APPS}/deployments`,
    body: {
      metadata: { name: "l" },
      spec: { replicas: 10, selector: { matchLabels: labels }, template: podTemplate(labels) },
    },
  },
  {
    what: "stateful set of 3,000 claims",
    path: `${APPS}/statefulsets`,
    body: {
      metadata: { name: "s" },
      spec: {
        serviceName: "s",
        replicas: 1,
        selector: { matchLabels: { a: "s" } },
        template: podTemplate({ a: "s" }),
        volumeClaimTemplates: many(3000, (index) => ({ metadata: { name: `v${index}` }, spec: claimSpec })),
      },
    },
  },
  {
    what: "job of parallelism 100,000",
    path: `${BATCH}/jobs`,
    body: { metadata: { name: "j" }, spec: { ...completions, template: jobTemplate } },
  },
  { what: "job suspended", path: `${BATCH}/jobs/j`, body: { spec: { suspend: true } }, verb: "PATCH" },
  quota(
    "counts",
    members(20_000, (index) => [`count/k${index}.example.com`, "1"] as const),
  ),
  quota(
    "requests",
    members(20_000, (index) => [`requests.example.com/r${index}`, "1"] as const),
  ),
  {
    what: "pod under the quotas",
    path: `${CORE}/pods`,
    body: { metadata: { name: "limited" }, spec: { containers: [{ name: "c", image: "i", resources: { limits } }] } },
  },
];

async function send(server: MeasuredServer, { path, body, verb = "POST" }: ControllerCase): Promise<Answer> {
  const type = verb === "PATCH" ? "application/merge-patch+json" : "application/json";
  const answer = await server.send({ line: `${verb} ${path}`, body: JSON.stringify(body), type }, "admin");
  await sleep(SETTLE_MS);
  return answer;
}

t.setTimeout(600_000);

t.test("controllers process the costliest objects in short turns", async (t) => {
  const flags = ["--embedded-controllers=*,-node-lifecycle"];
  await using server = await startMeasuredServer(t.testdir(), flags);
  await server.create("/api/v1/nodes", { metadata: { name: "n", labels: topologyLabels } });
  await sleep(SETTLE_MS);
  const rows: string[] = [];
  for (const each of all ? cases : cases.slice(...SAMPLE)) {
    const [{ status, text }, { ms, heapMiB, residentMiB }] = await server.measure(async () => await send(server, each));
    t.ok(status < 300, `${each.what}: ${status} ${status < 300 ? "" : text.slice(0, 300)}`);
    t.ok(ms < STALL_MS_MAX, `${each.what}: ${Math.round(ms)} ms`);
    const figures = [ms, heapMiB, residentMiB].map(Math.round).join(" | ");
    rows.push(`| ${each.what} | ${status} | ${figures} |`);
  }
  if (!all) return;
  const head = "| object | status | longest turn, ms | heap, MiB | resident, MiB |\n|---|---|---|---|---|";
  console.error(`${head}\n${rows.join("\n")}`);
});
