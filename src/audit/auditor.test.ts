import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import t, { type Test } from "tap";
import { systemRandom } from "../std/crypto/random.ts";
import { silentLogger } from "../std/log/logger.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { formatMetrics } from "../std/metrics/text-format.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { type AuditConfig, type Auditor, openAuditor } from "./auditor.ts";
import type { BackendOptions } from "./backend.ts";
import type { AuditEvent } from "./event.ts";
import { RequestAudit } from "./request-audit.ts";
import { sourceIps } from "./source-ips.ts";

const POLICY = "apiVersion: audit.svc.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n";
const backend: BackendOptions = {
  mode: "blocking",
  batch: { bufferSize: 10, maxSize: 1, maxWaitMs: 0, throttle: undefined },
  truncate: { enabled: false, maxEventSize: 0, maxBatchSize: 0 },
};
const user = { name: "jo", uid: "1", groups: ["staff"], extra: { scopes: ["a"] } };
const attributes = {
  user,
  verb: "create",
  isResourceRequest: true,
  namespace: "shop",
  group: "",
  resource: "pods",
  subresource: "",
  name: "",
  path: "/api/v1/namespaces/shop/pods",
};

/** Without labels. */
function metricsOf(registry: MetricRegistry): Readonly<Record<string, number>> {
  const lines = formatMetrics([registry], "prometheus").split("\n");
  const samples = lines.filter((line) => line.startsWith("apiserver_audit_"));
  return Object.fromEntries(samples.map((line) => [line.split(/[{ ]/, 1)[0]!, Number(line.split(" ").at(-1))]));
}

async function open(t: Test, more: (folder: string) => Partial<AuditConfig>) {
  const folder = t.testdir({ policy: POLICY });
  const clock = new FakeClock(Date.UTC(2026, 10, 22));
  const metrics = new MetricRegistry();
  const config = { policyFile: join(folder, "policy"), log: undefined, webhook: undefined, ...more(folder) };
  const auditor = await openAuditor(config, { clock, log: silentLogger, metrics, random: systemRandom });
  return { folder, clock, metrics, auditor };
}

const logTo = (folder: string, options: Partial<BackendOptions> & { readonly path?: string } = {}) => ({
  log: {
    path: join(folder, "audit.log"),
    format: "json" as const,
    version: "audit.svc.io/v1",
    maxSizeMb: 0,
    maxBackups: 0,
    maxAgeDays: 0,
    compress: false,
    ...backend,
    ...options,
  },
});

/** A request as it is recorded while it is served. */
async function record(auditor: Auditor, change: (audit: RequestAudit) => void = () => {}): Promise<AuditEvent> {
  const metadata = {
    auditId: "id",
    requestUri: attributes.path,
    verb: "create",
    user,
    sourceIps: ["10.0.0.1"],
    userAgent: "test",
    objectRef: { resource: "pods", namespace: "shop", apiVersion: "v1" },
    receivedAt: Date.UTC(2026, 10, 22),
  };
  const audit = new RequestAudit(
    auditor.decide(attributes),
    metadata,
    () =>
      new Map([
        ["b", "2"],
        ["a", "1"],
      ]),
  );
  change(audit);
  return (await audit.event("ResponseComplete", Date.UTC(2026, 10, 22, 0, 0, 1), 201))!;
}

t.test("an event has everything that is recorded of its request, in Kubernetes' order", async (t) => {
  const { auditor, folder } = await open(t, (folder) => logTo(folder));
  const event = await record(auditor, (audit) => {
    audit.impersonate({ name: "al", uid: "", groups: [], extra: {} });
    audit.setRequestObject({ name: "web", uid: "u" }, () => '{"kind":"Pod"}');
    audit.setResponse(() => '{"kind":"Pod","n":12345678901234567890}\n');
  });
  t.equal(await auditor.process(event), true);
  await auditor[Symbol.asyncDispose]();
  t.equal(
    readFileSync(join(folder, "audit.log"), "utf8"),
    '{"kind":"Event","apiVersion":"audit.svc.io/v1","level":"RequestResponse","auditID":"id",' +
      '"stage":"ResponseComplete","requestURI":"/api/v1/namespaces/shop/pods","verb":"create",' +
      '"user":{"username":"jo","uid":"1","groups":["staff"],"extra":{"scopes":["a"]}},' +
      '"impersonatedUser":{"username":"al"},"sourceIPs":["10.0.0.1"],"userAgent":"test",' +
      '"objectRef":{"resource":"pods","namespace":"shop","name":"web","uid":"u","apiVersion":"v1"},' +
      '"responseStatus":{"metadata":{},"code":201},"requestObject":{"kind":"Pod"},' +
      '"responseObject":{"kind":"Pod","n":12345678901234567890},' +
      '"requestReceivedTimestamp":"2026-11-22T00:00:00.000000Z","stageTimestamp":"2026-11-22T00:00:01.000000Z",' +
      '"annotations":{"a":"1","b":"2"}}\n',
  );
});

t.test("only a strict backend reports that it failed; each lost event is counted", async (t) => {
  for (const mode of ["blocking", "blocking-strict", "batch"] as const) {
    const { auditor, metrics } = await open(t, (folder) => logTo(folder, { path: "/dev/full", mode }));
    t.equal(await auditor.process(await record(auditor)), mode !== "blocking-strict", mode);
    await auditor[Symbol.asyncDispose]();
    t.match(metricsOf(metrics), { apiserver_audit_error_total: 1, apiserver_audit_event_total: 1 }, mode);
  }
});

t.test("large events lose their objects, and are dropped when they are still too large", async (t) => {
  const truncate = { enabled: true, maxEventSize: 900, maxBatchSize: 10_000 };
  const { auditor, folder, metrics } = await open(t, (folder) => logTo(folder, { truncate }));
  const large = await record(auditor, (audit) => audit.setResponse(() => JSON.stringify("x".repeat(1000))));
  await auditor.process(large);
  await auditor.process({ ...large, userAgent: "x".repeat(1000) });
  await auditor[Symbol.asyncDispose]();
  const [line = "", ...more] = readFileSync(join(folder, "audit.log"), "utf8").trimEnd().split("\n");
  t.equal(more.length, 0);
  t.match(JSON.parse(line), { annotations: { "audit.k8s.io/truncated": "true" }, responseObject: undefined });
  t.match(metricsOf(metrics), { apiserver_audit_error_total: 1 });
});

t.test("the webhook receives event lists; errors are retried with growing pauses", async (t) => {
  const bodies: string[] = [];
  const answers = [500, 429, 200];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      bodies.push(body);
      response.writeHead(answers.shift() ?? 200).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.teardown(() => server.close());
  const cluster = { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}/audit?a=b` };
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "a", cluster }],
    contexts: [{ name: "a", context: { cluster: "a", user: "" } }],
    "current-context": "a",
  };
  const { auditor, clock } = await open(t, (folder) => {
    const configFile = join(folder, "kubeconfig");
    writeFileSync(configFile, JSON.stringify(kubeconfig));
    return { webhook: { configFile, version: "audit.k8s.io/v1", initialBackoffMs: 1000, ...backend } };
  });
  let processed: boolean | undefined;
  const processing = Promise.resolve(auditor.process(await record(auditor))).then((result) => {
    processed = result;
  });
  while (processed === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    await clock.advance(100);
  }
  await processing;
  t.equal(processed, true);
  t.equal(bodies.length, 3);
  t.ok(clock.monotonic() >= 2500, "1 s, then 1.5 s");
  t.match(JSON.parse(bodies[2]!), { kind: "EventList", apiVersion: "audit.k8s.io/v1", items: [{ auditID: "id" }] });
  await auditor[Symbol.asyncDispose]();
});

t.test("openAuditor() rejects with one sentence", async (t) => {
  await t.rejects(
    open(t, (folder) => ({ policyFile: join(folder, "none") })),
    /^loading audit policy file: failed to read file path ".*none": ENOENT.*: from file .*none$/,
  );
  await t.rejects(
    open(t, () => logTo("/proc/none")),
    /^Cannot open --audit-log-path="\/proc\/none\/audit.log": /,
  );
});

t.test("sourceIps() has the addresses that proxies name, then that of the connection", async (t) => {
  const rows: readonly (readonly [Readonly<Record<string, string>>, string, readonly string[]])[] = [
    [{}, "10.0.0.1", ["10.0.0.1"]],
    [{ "x-forwarded-for": "10.1.0.1, nonsense, fd00::1" }, "10.0.0.1", ["10.1.0.1", "fd00::1", "10.0.0.1"]],
    [{ "x-forwarded-for": "10.1.0.1", "x-real-ip": "10.1.0.1" }, "10.1.0.1", ["10.1.0.1"]],
    [{ "x-real-ip": "10.2.0.1" }, "10.0.0.1", ["10.2.0.1", "10.0.0.1"]],
  ];
  for (const [headers, peer, expected] of rows) t.same(sourceIps(headers, peer), expected);
});
