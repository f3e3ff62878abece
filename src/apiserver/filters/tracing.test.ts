import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createLogger } from "../../std/log/logger.ts";
import { caBundle, startTestWebhook } from "../../testing/admission/webhook-fixture.ts";
import { KonnectivityServer } from "../../testing/apiserver/egress-proxies.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { type CollectedSpan, type Collector, startCollector } from "../../testing/tracing/collector.ts";

const REMOTE = "4bf92f3577b34da6a3ce929d0e0e4736";
const traceparent = `00-${REMOTE}-00f067aa0ba902b7-01`;
const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web" },
  spec: { containers: [{ name: "c", image: "i" }] },
};

async function configure(t: Test, text: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "svc-tracing-"));
  t.teardown(() => rm(directory, { recursive: true }));
  const file = join(directory, "tracing.yaml");
  await writeFile(file, `apiVersion: apiserver.svc.io/v1beta1\nkind: TracingConfiguration\n${text}`);
  return file;
}

/** The spans of the requests that `requests` sends. */
async function trace(
  t: Test,
  rate: number | undefined,
  requests: (server: TestServer, collector: Collector) => Promise<unknown>,
): Promise<readonly CollectedSpan[]> {
  const collector = await startCollector(t);
  const sampling = rate === undefined ? "" : `samplingRatePerMillion: ${rate}\n`;
  const tracingFile = await configure(t, `endpoint: ${collector.endpoint}\n${sampling}`);
  const server = await startTestServer({ tracingFile, embeddedControllers: [] });
  await requests(server, collector);
  await server[Symbol.asyncDispose]();
  return collector.spans;
}

/** A trace as lines that are indented by the depth of the span. */
function outline(spans: readonly CollectedSpan[], parent: CollectedSpan, depth = 0): readonly string[] {
  const children = spans
    .filter(({ parentId }) => parentId === parent.spanId)
    .flatMap((child) => outline(spans, child, depth + 1));
  return [`${"  ".repeat(depth)}${parent.name}`, ...children];
}

t.test("a sampled request has the spans of the server, filters, handler, admission and storage", async (t) => {
  const spans = await trace(t, 1_000_000, async (server) => {
    await server.send("POST /api/v1/namespaces/default/pods", { body: pod, headers: { "user-agent": "test/1" } });
  });
  const root = spans.find(({ name }) => name === "POST /api/v1/namespaces/{:namespace}/pods")!;
  t.match(outline(spans, root), [
    "POST /api/v1/namespaces/{:namespace}/pods",
    "  authentication",
    "    impersonation",
    "      priorityandfairness",
    "        authorization",
    "          Create",
    "            mutating admission",
    "            validating admission",
    "            Create etcd3",
  ]);
  t.match(root, {
    service: "apiserver",
    kind: 2,
    attributes: {
      "http.method": "POST",
      "http.target": "/api/v1/namespaces/default/pods",
      "http.status_code": 201,
      "user_agent.original": "test/1",
      "audit-id": /^[0-9a-f-]{36}$/,
    },
  });
  const create = spans.find(({ name }) => name === "Create");
  t.match(create?.attributes, { verb: "POST", resource: "pods", namespace: "default", scope: "resource" });
  t.same(
    create?.events.map(({ name }) => name),
    [
      "limitedReadBody succeeded",
      "About to convert to expected version",
      "Conversion done",
      "About to store object in database",
      "Write to database call succeeded",
    ],
  );
  const stored = spans.find(({ name }) => name === "Create etcd3");
  t.match(stored?.attributes, { key: "/registry/pods/default/web", type: "*core.Pod", resource: "pods" });
});

t.test("a list from the watch cache has its span", async (t) => {
  const spans = await trace(t, 1_000_000, async (server) => {
    await server.send("GET /api/v1/pods?limit=5");
  });
  t.match(
    spans.find(({ name }) => name === "cacher.GetList"),
    { attributes: { type: "pods" }, events: [{ name: "Ready" }, { name: "Listed items from cache" }] },
  );
});

t.test("without a rate only requests of trusted callers that are sampled are exported", async (t) => {
  const spans = await trace(t, undefined, async (server) => {
    await server.send("GET /api/v1/nodes");
    await server.send("GET /api/v1/nodes", { headers: { traceparent }, user: "bob" });
    await server.send("GET /api/v1/pods", { headers: { traceparent: traceparent.replace(/1$/, "0") } });
    await server.send("GET /version", { headers: { traceparent } });
  });
  t.same(new Set(spans.map(({ traceId }) => traceId)), new Set([REMOTE]));
  t.match(
    spans.find(({ kind }) => kind === 2),
    { name: "GET", parentId: "00f067aa0ba902b7" },
  );
  t.ok(spans.some(({ name }) => name === "authentication"));
});

t.test("a sampled request of another user starts a trace of its own, with a link", async (t) => {
  const spans = await trace(t, 1_000_000, async (server) => {
    await server.send("GET /api/v1/nodes", { headers: { traceparent }, user: "bob" });
  });
  const root = spans.find(({ kind, links }) => kind === 2 && links.length > 0);
  t.same(root?.links, [REMOTE]);
  t.not(root?.traceId, REMOTE);
});

const allow = ({ review }: { readonly review: { readonly request: { readonly uid: string } } }): object => ({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  response: { uid: review.request.uid, allowed: true },
});

async function addWebhook(server: TestServer, url: string): Promise<void> {
  const rules = [{ apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["CREATE"] }];
  const common = { rules, sideEffects: "None", admissionReviewVersions: ["v1"], failurePolicy: "Fail" };
  const webhooks = [{ ...common, name: "a.example.com", clientConfig: { url, caBundle } }];
  const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  await server.send(`POST ${path}`, { body: { metadata: { name: "hook" }, webhooks } });
}

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";

t.test("a webhook gets the context of the span that calls it", async (t) => {
  await using hook = await startTestWebhook(allow);
  const spans = await trace(t, 1_000_000, async (server) => {
    await addWebhook(server, hook.url);
    await server.send(`POST ${CONFIG_MAPS}`, { body: { metadata: { name: "a" } }, headers: { traceparent } });
  });
  const call = spans.find(({ name }) => name === "Call validating webhook");
  t.match(call?.attributes, {
    configuration: "hook",
    webhook: "a.example.com",
    resource: "/v1, Resource=configmaps",
    operation: "CREATE",
  });
  const request = spans.find(({ name }) => name === "HTTP POST");
  t.match(request, { parentId: call?.spanId, kind: 3, traceId: REMOTE, attributes: { "http.status_code": 200 } });
  t.equal(hook.received[0]?.headers.traceparent, `00-${REMOTE}-${request?.spanId}-01`);
});

t.test("without a collector a webhook gets the context of the client, and without one none", async (t) => {
  await using hook = await startTestWebhook(allow);
  await using server = await startTestServer();
  await addWebhook(server, hook.url);
  await server.send(`POST ${CONFIG_MAPS}`, { body: { metadata: { name: "a" } }, headers: { traceparent } });
  await server.send(`POST ${CONFIG_MAPS}`, { body: { metadata: { name: "b" } } });
  t.same(
    hook.received.map(({ headers }) => headers.traceparent),
    [traceparent, undefined],
  );
});

t.test("a slow webhook is a part of the log of its slow request", async (t) => {
  const lines: string[] = [];
  const stderr = { write: (line: string) => lines.push(line), flushSync: () => {} };
  const clock = new FakeClock();
  await using hook = await startTestWebhook(async (received) => {
    await clock.advance(700);
    return allow(received);
  });
  await using server = await startTestServer({}, { clock, log: createLogger({}, { clock, stderr }) });
  await addWebhook(server, hook.url);
  await server.send(`POST ${CONFIG_MAPS}`, { body: { metadata: { name: "a" } } });
  const [line = ""] = lines.filter((each) => each.includes("Trace["));
  t.match(line, /"Create" .*resource:configmaps/);
  t.match(line, /\nTrace\[\d+\]: \["Call validating webhook" configuration:hook,webhook:a\.example\.com,.* 700ms \(/);
  t.match(line, /\nTrace\[\d+\]: {2}---"Request completed" 700ms/);
});

t.test("the collector is reached through the egress proxy of the control plane", async (t) => {
  const collector = await startCollector(t);
  const directory = await mkdtemp(join(tmpdir(), "svc-tracing-"));
  t.teardown(() => rm(directory, { recursive: true }));
  await using proxy = await KonnectivityServer.start({ path: join(directory, "proxy") });
  const egressSelectorFile = join(directory, "egress.json");
  const connection = { proxyProtocol: "GRPC", transport: { uds: { udsName: join(directory, "proxy") } } };
  const egressSelections = [{ name: "controlplane", connection }];
  const identity = { apiVersion: "apiserver.k8s.io/v1beta1", kind: "EgressSelectorConfiguration" };
  await writeFile(egressSelectorFile, JSON.stringify({ ...identity, egressSelections }));
  const tracingFile = await configure(t, `endpoint: ${collector.endpoint}\nsamplingRatePerMillion: 1000000\n`);
  const server = await startTestServer({ tracingFile, egressSelectorFile });
  await server.send("GET /version");
  await server[Symbol.asyncDispose]();
  t.ok(collector.spans.some(({ name }) => name === "GET"));
  t.same([...new Set(proxy.targets)], [collector.endpoint]);
});

t.test("secrets in queries and credentials are in no span", async (t) => {
  const spans = await trace(t, 1_000_000, async (server) => {
    await server.send("GET /api/v1/namespaces/default/pods/web/exec?command=hidden-command");
    await server.send("GET /api/v1/pods", { headers: { authorization: "Bearer hidden-token" }, user: "" });
  });
  t.ok(spans.length > 2);
  t.notMatch(
    JSON.stringify(spans, (_key, value) => (typeof value === "bigint" ? String(value) : value)),
    /hidden/,
  );
});

t.test("an invalid file stops the start with file, line and field", async (t) => {
  const rows = [
    [
      "samplingRatePerMillion: -1\n",
      /tracing\.yaml:3: samplingRatePerMillion: Invalid value: -1: sampling rate must be positive/,
    ],
    ["samplingRatePerMillion: 1000001\n", /must be less than or equal to one million/],
    [
      "endpoint: http://localhost:4317\n",
      /tracing\.yaml:3: endpoint: .*unsupported scheme: http\. {2}Options are none, dns/,
    ],
    ["endpoint: localhost:port\n", /invalid port ":port" after host/],
    ["endpoints: a\n", /tracing\.yaml:3: unknown field endpoints/],
  ] as const;
  for (const [text, expected] of rows) {
    await t.rejects(startTestServer({ tracingFile: await configure(t, text) }), { message: expected });
  }
});

t.test("a request over 500 ms is logged with its steps", async (t) => {
  const lines: string[] = [];
  const stderr = { write: (line: string) => lines.push(line), flushSync: () => {} };
  const clock = new FakeClock();
  await using server = await startTestServer({}, { clock, log: createLogger({}, { clock, stderr }) });
  const body = async function* () {
    await clock.advance(600);
    yield Buffer.from(JSON.stringify(pod));
  };
  await server.open("POST /api/v1/namespaces/default/pods", { stream: body() });
  const [line = ""] = lines.filter((each) => each.includes("Trace["));
  t.match(line, /Trace\[\d+\]: "Create" accept:,audit-id:.*,resource:pods,scope:resource,url:\/api\/v1\/namespaces/);
  t.match(line, /\(total time: 600ms\):\nTrace\[\d+\]: ---"limitedReadBody succeeded" len:\d+ 600ms/);
  t.match(line, /\nTrace\[\d+\]: \[600ms\] \[600ms\] END\n$/);
});
