import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { Auditor } from "../../audit/auditor.ts";
import type { AuditEvent } from "../../audit/event.ts";
import type { Stage } from "../../audit/policy.ts";
import { defaultFlags } from "../../flags/flag.ts";
import { makeRequest } from "../../http/request.ts";
import { textResponse } from "../../http/respond.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import { type Store, StoreError } from "../../storage/store.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { addLatency } from "../../tracing/span.ts";
import { auditConfig } from "../config/audit-options.ts";
import { auditFlags } from "../flags/audit.ts";
import { applyFilters, type RequestHandler, withUser } from "../request/request-context.ts";
import { withAudit } from "./audit.ts";
import { withAuthorization } from "./authorization.ts";
import { withRequestInfo } from "./request-info.ts";
import { RequestTracing } from "./tracing.ts";

interface LoggedEvent {
  readonly stage: string;
  readonly auditID: string;
  readonly responseStatus?: { readonly code: number; readonly message?: string };
}

/** The events of a write that the store answers with the error. */
async function failToCreate(
  t: Test,
  error: Error,
  omitStages: readonly string[] = [],
): Promise<readonly LoggedEvent[]> {
  const directory = await mkdtemp(join(tmpdir(), "svc-panic-"));
  t.teardown(() => rm(directory, { recursive: true }));
  const policy = join(directory, "policy");
  const rules = [
    { level: "None", nonResourceURLs: ["*"] },
    { level: "Request", resources: [{ resources: ["configmaps"] }] },
  ];
  await writeFile(policy, JSON.stringify({ apiVersion: "audit.k8s.io/v1", kind: "Policy", omitStages, rules }));
  const log = join(directory, "log");
  const flags = { ...defaultFlags(auditFlags), "audit-policy-file": policy, "audit-log-path": log };
  const store = createMemoryStore({ clock: new FakeClock() });
  const create: Store["create"] = store.create.bind(store);
  const createOrFail: Store["create"] = (key, ...more) =>
    key.endsWith("/configmaps/default/a") ? Promise.reject(error) : create(key, ...more);
  Object.assign(store, { create: createOrFail });
  const server = await startTestServer({ audit: auditConfig(flags) }, { store });
  const body = { metadata: { name: "a" } };
  const { status, text } = await server.send("POST /api/v1/namespaces/default/configmaps", { body });
  t.equal(status, 500);
  t.notMatch(text, "secret detail");
  await server[Symbol.asyncDispose]();
  const lines = (await readFile(log, "utf8")).split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as LoggedEvent);
}

t.test(
  "discovery documents are recorded as responses, and requests for deprecated versions have annotations",
  async (t) => {
    const directory = await mkdtemp(join(tmpdir(), "svc-discovery-"));
    t.teardown(() => rm(directory, { recursive: true }));
    const [policy, log] = [join(directory, "policy"), join(directory, "log")];
    const rules = [{ level: "RequestResponse", omitStages: ["RequestReceived"] }];
    await writeFile(policy, JSON.stringify({ apiVersion: "audit.k8s.io/v1", kind: "Policy", rules }));
    const flags = { ...defaultFlags(auditFlags), "audit-policy-file": policy, "audit-log-path": log };
    const server = await startTestServer({ audit: auditConfig(flags) });
    const aggregated = { accept: "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io" };
    await server.send("GET /api", { headers: { "audit-id": "versions" } });
    await server.send("GET /apis", { headers: { "audit-id": "groups" } });
    await server.send("GET /apis/apps", { headers: { "audit-id": "group" } });
    await server.send("GET /apis/apps/v1", { headers: { "audit-id": "resources" } });
    await server.send("GET /apis", { headers: { ...aggregated, "audit-id": "aggregated" } });
    const schema = { openAPIV3Schema: { type: "object" } };
    const version = { name: "v1", served: true, storage: true, deprecated: true, schema };
    const names = { plural: "things", kind: "Thing" };
    const spec = { group: "example.com", names, scope: "Namespaced", versions: [version] };
    const body = { metadata: { name: "things.example.com" }, spec };
    await server.send("POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body });
    await server.clock.advance(1000);
    await server.send("GET /apis/example.com/v1/things", { headers: { "audit-id": "deprecated" } });
    await server.send("GET /api/v1/componentstatuses", { headers: { "audit-id": "status" } });
    await server.send("GET /api/v1/configmaps", { headers: { "audit-id": "current" } });
    await server[Symbol.asyncDispose]();
    const lines = (await readFile(log, "utf8")).split("\n").filter((line) => line !== "");
    const events = new Map(lines.map((line) => [JSON.parse(line).auditID, JSON.parse(line)]));
    const kinds = { versions: "APIVersions", groups: "APIGroupList", group: "APIGroup", resources: "APIResourceList" };
    for (const [id, kind] of Object.entries(kinds)) t.equal(events.get(id).responseObject?.kind, kind, id);
    t.match(events.get("aggregated").responseObject, { kind: "APIGroupDiscoveryList", items: [] });
    for (const id of ["deprecated", "status"]) t.match(events.get(id).annotations, { "k8s.io/deprecated": "true" }, id);
    t.notOk("k8s.io/removed-release" in events.get("deprecated").annotations);
    t.notOk("k8s.io/deprecated" in events.get("current").annotations);
  },
);

t.test("a request that ends with an unexpected error is recorded in the stage Panic, with code 500", async (t) => {
  const events = await failToCreate(t, new TypeError("secret detail"));
  t.match(events, [{ stage: "RequestReceived" }, { stage: "Panic", responseStatus: { code: 500 } }]);
  t.equal(events.length, 2);
  t.equal(events[0]?.auditID, events[1]?.auditID);
  t.notMatch(JSON.stringify(events), "secret detail");
});

t.test("an error that the store reports is an ordinary response", async (t) => {
  const events = await failToCreate(t, new StoreError("corrupt", "damaged"));
  t.match(events, [{ stage: "RequestReceived" }, { stage: "ResponseComplete", responseStatus: { code: 500 } }]);
});

t.test(
  "events have the time before authentication and the text of the user agent; old proxies are long-running",
  async (t) => {
    const events: AuditEvent[] = [];
    const level = "Metadata" as const;
    const decision = { level, omitStages: new Set<Stage>(), omitManagedFields: false };
    const auditor = { decide: () => decision, process: (event: AuditEvent) => events.push(event) > 0 };
    const clock = new FakeClock();
    const receivedAt = clock.now();
    const filters = [
      (next: RequestHandler): RequestHandler =>
        async (context) => {
          await clock.advance(2000);
          return await next(context);
        },
      withAudit(auditor as unknown as Auditor, clock, silentLogger),
    ];
    const handler = withRequestInfo(
      applyFilters(filters, async () => textResponse(200, "")),
      seededRandom(1),
      clock,
    );
    const rawHeaders = ["User-Agent", Buffer.from("jos\u00e9/1").toString("latin1")];
    const headers = { "user-agent": rawHeaders[1] ?? "" };
    for (const path of ["/api/v1/pods", "/api/v1/proxy/namespaces/a/pods/b"])
      await handler({ ...makeRequest({ path, headers }), rawHeaders });
    t.same(
      events.map(({ stage, verb, stageAt, userAgent }) => [verb, stage, stageAt - receivedAt, userAgent]),
      [
        ["list", "RequestReceived", 0, "jos\u00e9/1"],
        ["list", "ResponseComplete", 2000, "jos\u00e9/1"],
        ["proxy", "RequestReceived", 2000, "jos\u00e9/1"],
        ["proxy", "ResponseStarted", 4000, "jos\u00e9/1"],
        ["proxy", "ResponseComplete", 4000, "jos\u00e9/1"],
      ],
    );
  },
);

t.test("the last event of a request over 500 ms has the latencies of its layers", async (t) => {
  const PREFIX = "apiserver.latency.k8s.io/";
  const serve = async (storeMs: number, isStreamed = false) => {
    const events: AuditEvent[] = [];
    const decision = { level: "Metadata" as const, omitStages: new Set<Stage>(), omitManagedFields: false };
    const auditor = { decide: () => decision, process: (event: AuditEvent) => events.push(event) > 0 };
    const clock = new FakeClock();
    const allow = async () => {
      await clock.advance(20);
      return { decision: "allow" as const, reason: "" };
    };
    const wait =
      (next: RequestHandler): RequestHandler =>
      async (context) => {
        await clock.advance(300);
        return await next(withUser(context, { name: "a", uid: "", groups: [], extra: {} }));
      };
    const filters = [
      wait,
      withAudit(auditor as unknown as Auditor, clock, silentLogger),
      withAuthorization({ authorize: allow }, clock),
      new RequestTracing({ clock, log: silentLogger, tracer: undefined }).handler,
    ];
    const handle: RequestHandler = async () => {
      await clock.advance(storeMs);
      addLatency("store", storeMs / 2);
      addLatency("store", storeMs / 2);
      for (const ms of [3, 2]) addLatency("mutatingWebhooks", ms);
      for (const ms of [3, 2]) addLatency("validatingWebhooks", ms);
      addLatency("decode", 4);
      addLatency("transform", 1);
      addLatency("serialize", 6);
      await clock.advance(7);
      if (!isStreamed) return textResponse(200, "");
      async function* chunks(): AsyncGenerator<Uint8Array> {
        for (const text of "ab") {
          await clock.advance(10);
          yield Buffer.from(text);
        }
      }
      return { ...textResponse(200, ""), body: chunks(), finite: true };
    };
    const handler = withRequestInfo(applyFilters(filters, handle), seededRandom(1), clock);
    const { body } = await handler(makeRequest({ path: "/api/v1/namespaces/a/pods/b" }));
    if (isStreamed) for await (const _ of body as AsyncIterable<Uint8Array>) await clock.advance(100);
    return events.map(({ annotations }) =>
      Object.fromEntries(
        [...annotations].flatMap(([key, value]) => (key.startsWith(PREFIX) ? [[key.slice(PREFIX.length), value]] : [])),
      ),
    );
  };
  t.same(await serve(173), [{}, {}], "500 ms");
  t.same(await serve(174), [
    {},
    {
      authentication: "300ms",
      authorization: "20ms",
      "decode-response-object": "4ms",
      etcd: "174ms",
      "mutating-webhook": "5ms",
      "serialize-response-object": "6ms",
      total: "501ms",
      "transform-response-object": "1ms",
      "validating-webhook": "3ms",
    },
  ]);
  t.match((await serve(1, true))[1], {
    "response-write": "200ms",
    "serialize-response-object": "226ms",
    total: "548ms",
  });
});

t.test("a policy can omit the stage Panic", async (t) => {
  const events = await failToCreate(t, new TypeError("secret detail"), ["Panic"]);
  t.match(events, [{ stage: "RequestReceived" }]);
  t.equal(events.length, 1);
});

t.test("managed fields are recorded, and left out where the policy says so", async (t) => {
  for (const omitManagedFields of [false, true]) {
    const directory = await mkdtemp(join(tmpdir(), "svc-managed-"));
    t.teardown(() => rm(directory, { recursive: true }));
    const policy = join(directory, "policy");
    const rules = [{ level: "RequestResponse", resources: [{ resources: ["configmaps"] }] }];
    const omitStages = ["RequestReceived"];
    const head = { apiVersion: "audit.k8s.io/v1", kind: "Policy" };
    await writeFile(policy, JSON.stringify({ ...head, omitManagedFields, omitStages, rules }));
    const log = join(directory, "log");
    const flags = { ...defaultFlags(auditFlags), "audit-policy-file": policy, "audit-log-path": log };
    const server = await startTestServer(
      { audit: auditConfig(flags) },
      { store: createMemoryStore({ clock: new FakeClock() }) },
    );
    const path = "/api/v1/namespaces/default/configmaps";
    const managedFields = [{ manager: "m", operation: "Update", apiVersion: "v1", fieldsV1: {} }];
    // The data of one is sent in chunks.
    for (const [name, value] of Object.entries({ a: "managedFields", b: "x".repeat(200_000) })) {
      await server.send(`POST ${path}`, { body: { metadata: { name, managedFields }, data: { value } } });
    }
    const asTable = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
    await server.send(`GET ${path}/a`);
    await server.send(`GET ${path}`);
    await server.send(`GET ${path}`, { headers: asTable });
    await server[Symbol.asyncDispose]();
    const lines = (await readFile(log, "utf8")).trimEnd().split("\n");
    t.equal(lines.length, 5);
    for (const line of lines) {
      const { requestObject, responseObject, verb } = JSON.parse(line) as Record<string, object | undefined>;
      t.equal(JSON.stringify(responseObject).includes('"managedFields":'), !omitManagedFields, String(verb));
      t.match(JSON.stringify(responseObject), /"name":"a"|"name":"b"/);
      if (requestObject === undefined) continue;
      t.equal(JSON.stringify(requestObject).includes('"managedFields":'), !omitManagedFields, "request");
    }
  }
});
