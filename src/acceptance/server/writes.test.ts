/** Responses of the write verbs: codes, dry runs, preconditions, propagation policies, order of checks. */
import t, { type Test } from "tap";
import { startTestServer, type TestResponse, type TestServer } from "../../testing/apiserver/server-fixture.ts";

const EVENTS = "/apis/events.svc.io/v1/namespaces/default/events";
const MAPS = "/api/v1/namespaces/default/configmaps";
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const PODS = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments";
const MERGE = { "content-type": "application/merge-patch+json" };
const APPLY = { "content-type": "application/apply-patch+yaml" };

const event = (name: string) => ({
  metadata: { name },
  eventTime: "2026-01-01T00:00:00.000000Z",
  reportingController: "example.com/writer",
  reportingInstance: "writer-1",
  action: "Written",
  reason: "Written",
  regarding: { kind: "Pod", namespace: "default", name: "web" },
  type: "Normal",
});

const pod = (name: string) => ({ metadata: { name }, spec: { containers: [{ name: "c", image: "i" }] } });
const template = { metadata: { labels: { app: "a" } }, spec: pod("").spec };
const deployment = { metadata: { name: "a" }, spec: { selector: { matchLabels: { app: "a" } }, template } };
const wanted = (apiVersion: string, kind: string, name: string) =>
  JSON.stringify({ apiVersion, kind, metadata: { name, labels: { applied: "yes" } } });

t.test("empty labels are as none for stores, responses, policies and managed fields", async (t) => {
  await using server = await startTestServer();
  const policies = "/apis/admissionregistration.svc.io/v1/validatingadmissionpolicies";
  const rule = { apiGroups: ["apps"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["deployments"] };
  const spec = {
    matchConstraints: { resourceRules: [rule] },
    validations: [{ expression: "!has(object.metadata.labels)" }],
  };
  const created = await server.send(`POST ${policies}`, { body: { metadata: { name: "p" }, spec } });
  t.equal(created.status, 201, created.text);
  const binding = { metadata: { name: "p" }, spec: { policyName: "p", validationActions: ["Deny"] } };
  await server.send(`POST ${policies.replace("policies", "policybindings")}`, { body: binding });
  const deny = await server.send(`POST ${DEPLOYMENTS}?dryRun=All`, {
    body: { ...deployment, metadata: { name: "a", labels: { a: "b" } } },
  });
  t.equal(deny.status, 422, deny.text);
  const empty = { ...deployment, metadata: { name: "a", labels: {} } };
  const allowed = await server.send(`POST ${DEPLOYMENTS}?fieldManager=m`, { body: empty });
  t.equal(allowed.status, 201, allowed.text);
  t.notMatch(allowed.text, /"labels":\{\}|"fieldsV1":\{"f:metadata"/);
  const again = await server.send(`PUT ${DEPLOYMENTS}/a?fieldManager=m`, { body: empty });
  t.equal(again.json.metadata.resourceVersion, allowed.json.metadata.resourceVersion);
  const unmatched = { ...empty, spec: { ...deployment.spec, template: { ...template, metadata: { labels: {} } } } };
  const refused = await server.send(`POST ${DEPLOYMENTS}`, { body: unmatched });
  t.match(refused.json.message, /spec\.template\.metadata\.labels: Invalid value: map\[string\]string\{\}: /);
});

interface Step {
  readonly line: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly user?: string;
  readonly status: number;
  readonly kind: string;
}

async function walk(t: Test, server: TestServer, steps: readonly Step[]): Promise<void> {
  for (const { line, status, kind, ...requests } of steps) {
    const response = await server.send(line, requests);
    t.same([response.status, response.json.kind], [status, kind], `${line}: ${response.text.slice(0, 200)}`);
  }
}

t.test("each operation on events responds with the specified code", async (t) => {
  await using server = await startTestServer();
  const later = { ...event("a"), series: { count: 2, lastObservedTime: "2026-01-01T00:01:00.000000Z" } };
  const applied = wanted("events.svc.io/v1", "Event", "a");
  const none = { user: "", headers: { authorization: "Bearer wrong" }, status: 401, kind: "Status" };
  await walk(t, server, [
    { line: `POST ${EVENTS}?dryRun=All`, body: event("a"), status: 201, kind: "Event" },
    { line: `GET ${EVENTS}/a`, status: 404, kind: "Status" },
    { line: `POST ${EVENTS}`, body: event("a"), status: 201, kind: "Event" },
    { line: `GET ${EVENTS}/a`, status: 200, kind: "Event" },
    { line: `GET ${EVENTS}?limit=1`, status: 200, kind: "EventList" },
    { line: "GET /apis/events.svc.io/v1/events", status: 200, kind: "EventList" },
    { line: `PUT ${EVENTS}/a?dryRun=All`, body: later, status: 200, kind: "Event" },
    { line: `PUT ${EVENTS}/a`, body: later, status: 200, kind: "Event" },
    { line: `PUT ${EVENTS}/b`, body: event("b"), status: 201, kind: "Event" },
    {
      line: `PATCH ${EVENTS}/a`,
      body: { metadata: { labels: { x: "y" } } },
      headers: MERGE,
      status: 200,
      kind: "Event",
    },
    { line: `PATCH ${EVENTS}/a?fieldManager=m`, body: applied, headers: APPLY, status: 200, kind: "Event" },
    { line: `DELETE ${EVENTS}/a?dryRun=All`, status: 200, kind: "Status" },
    { line: `DELETE ${EVENTS}/a`, status: 200, kind: "Status" },
    { line: `DELETE ${EVENTS}/a`, status: 404, kind: "Status" },
    { line: `DELETE ${EVENTS}`, status: 200, kind: "EventList" },
    { line: `GET ${EVENTS}/b`, ...none },
    { line: `GET ${EVENTS}`, ...none },
    { line: `POST ${EVENTS}`, body: event("c"), ...none },
    { line: `PUT ${EVENTS}/b`, body: event("b"), ...none },
    { line: `DELETE ${EVENTS}/b`, ...none },
    { line: `DELETE ${EVENTS}`, ...none },
  ]);
});

t.test("updates create missing objects of the kinds that allow it", async (t) => {
  await using server = await startTestServer();
  const lease = { metadata: { name: "a" }, spec: { holderIdentity: "x", leaseDurationSeconds: 10 } };
  await walk(t, server, [
    { line: `PUT ${LEASES}/a?dryRun=All`, body: lease, status: 201, kind: "Lease" },
    { line: `GET ${LEASES}/a`, status: 404, kind: "Status" },
    { line: `PUT ${LEASES}/a`, body: lease, status: 201, kind: "Lease" },
    { line: `PUT ${LEASES}/a`, body: lease, status: 422, kind: "Status" },
    { line: `PUT ${MAPS}/a`, body: { metadata: { name: "a" } }, status: 404, kind: "Status" },
    { line: `PUT ${PODS}/a`, body: pod("a"), status: 404, kind: "Status" },
    { line: `PUT ${LEASES}/b`, body: { metadata: { name: "b", uid: "x" } }, status: 409, kind: "Status" },
  ]);
  const version = { ...lease, metadata: { name: "c", resourceVersion: "1" } };
  t.equal((await server.send(`PUT ${LEASES}/c`, { body: version })).status, 404, "one that was there once is gone");
});

t.test("a dry run of each verb has the response of the verb, and writes nothing", async (t) => {
  await using server = await startTestServer();
  await server.send(`POST ${MAPS}`, { body: { metadata: { name: "kept" }, data: { k: "1" } } });
  await server.send(`POST ${PODS}`, { body: pod("web") });
  await server.send(`POST ${DEPLOYMENTS}`, { body: deployment });
  const now = (await server.send(`GET ${MAPS}`)).json.metadata.resourceVersion;
  const changed = { metadata: { name: "kept" }, data: { k: "2" } };
  const applied = wanted("v1", "ConfigMap", "new");
  const scale = { metadata: { name: "a" }, spec: { replicas: 5 } };
  const binding = { metadata: { name: "web" }, target: { kind: "Node", name: "n" } };
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "web" } };
  const status = { ...pod("web"), status: { phase: "Running" } };
  await walk(t, server, [
    { line: `POST ${MAPS}?dryRun=All`, body: { metadata: { name: "new" } }, status: 201, kind: "ConfigMap" },
    { line: `POST ${MAPS}?dryRun=All`, body: { metadata: { name: "kept" } }, status: 409, kind: "Status" },
    { line: `PUT ${MAPS}/kept?dryRun=All`, body: changed, status: 200, kind: "ConfigMap" },
    { line: `PATCH ${MAPS}/kept?dryRun=All`, body: changed, headers: MERGE, status: 200, kind: "ConfigMap" },
    {
      line: `PATCH ${MAPS}/new?dryRun=All&fieldManager=m`,
      body: applied,
      headers: APPLY,
      status: 201,
      kind: "ConfigMap",
    },
    { line: `DELETE ${MAPS}/kept?dryRun=All`, status: 200, kind: "Status" },
    { line: `DELETE ${MAPS}/kept`, body: { dryRun: ["All"] }, status: 200, kind: "Status" },
    { line: `DELETE ${MAPS}?dryRun=All`, status: 200, kind: "ConfigMapList" },
    { line: `PUT ${DEPLOYMENTS}/a/scale?dryRun=All`, body: scale, status: 200, kind: "Scale" },
    { line: `PATCH ${DEPLOYMENTS}/a/scale?dryRun=All`, body: scale, headers: MERGE, status: 200, kind: "Scale" },
    { line: `PUT ${PODS}/web/status?dryRun=All`, body: status, status: 200, kind: "Pod" },
    { line: `POST ${PODS}/web/binding?dryRun=All`, body: binding, status: 201, kind: "Status" },
    { line: `POST ${PODS}/web/eviction?dryRun=All`, body: eviction, status: 201, kind: "Status" },
    { line: `DELETE ${PODS}/web?dryRun=All`, status: 200, kind: "Pod" },
  ]);
  const after = (await server.send(`GET ${MAPS}`)).json;
  t.equal(after.metadata.resourceVersion, now, "no write at all");
  t.match((await server.send(`GET ${PODS}/web`)).json, { spec: { nodeName: undefined }, metadata: {} });
});

t.test("deletes respect preconditions and propagation policies", async (t) => {
  await using server = await startTestServer({ garbageCollector: true });
  const make = async (): Promise<{ uid: string; resourceVersion: string }> =>
    (await server.send(`POST ${MAPS}`, { body: { metadata: { name: "a", finalizers: [] } } })).json.metadata;
  const { uid, resourceVersion } = await make();
  const cases: readonly (readonly [query: string, body: object | undefined, status: number, message: RegExp])[] = [
    [
      "",
      { preconditions: { uid: "other" } },
      409,
      /the UID in the precondition \(other\) does not match the UID in record/,
    ],
    [
      "",
      { preconditions: { uid, resourceVersion: "1" } },
      409,
      /the ResourceVersion in the precondition \(1\) does not match/,
    ],
    ["?uid=other", undefined, 409, /UID in the precondition \(other\)/],
    ["", { propagationPolicy: "Sideways" }, 422, /propagationPolicy: Unsupported value: "Sideways"/],
    ["?propagationPolicy=Sideways", undefined, 422, /propagationPolicy: Unsupported value/],
    ["", { propagationPolicy: "Orphan", orphanDependents: true }, 422, /cannot be both set/],
    ["", { dryRun: ["Some"] }, 422, /dryRun: Unsupported value/],
    ["?gracePeriodSeconds=soon", undefined, 400, /parsing "soon": invalid syntax/],
    ["", { preconditions: { uid, resourceVersion } }, 200, /^$/],
  ];
  for (const [query, body, status, message] of cases) {
    const response = await server.send(`DELETE ${MAPS}/a${query}`, body === undefined ? {} : { body });
    t.equal(response.status, status, `${query} ${JSON.stringify(body)}: ${response.text}`);
    t.match(response.json.message ?? "", message);
  }
  const policies = [
    ["Foreground", 200, ["foregroundDeletion"]],
    ["Orphan", 200, ["orphan"]],
  ] as const;
  for (const [propagationPolicy, status, finalizers] of policies) {
    await make();
    const response = await server.send(`DELETE ${MAPS}/a`, { body: { propagationPolicy } });
    t.same([response.status, response.json.metadata.finalizers], [status, finalizers], propagationPolicy);
    await server.send(`PATCH ${MAPS}/a`, { body: { metadata: { finalizers: null } }, headers: MERGE });
    t.equal((await server.send(`GET ${MAPS}/a`)).status, 404, "gone with its finalizers");
  }
  await make();
  t.equal((await server.send(`DELETE ${MAPS}/a?propagationPolicy=Background`)).status, 200);
  t.equal((await server.send(`GET ${MAPS}/a`)).status, 404);
});

t.test("pods on nodes are deleted after the grace period, which the client may set", async (t) => {
  await using server = await startTestServer();
  const bound = (name: string) => ({ ...pod(name), spec: { ...pod(name).spec, nodeName: "n" } });
  const cases: readonly (readonly [query: string, body: object | undefined, grace: number])[] = [
    ["", undefined, 30],
    ["?gracePeriodSeconds=7", undefined, 7],
    ["", { gracePeriodSeconds: 9 }, 9],
    ["?gracePeriodSeconds=7", { gracePeriodSeconds: 9 }, 9],
  ];
  for (const [i, [query, body, grace]] of cases.entries()) {
    await server.send(`POST ${PODS}`, { body: bound(`p${i}`) });
    const response = await server.send(`DELETE ${PODS}/p${i}${query}`, body === undefined ? {} : { body });
    t.match(response, { status: 200, json: { metadata: { deletionGracePeriodSeconds: grace } } }, `${query}`);
  }
  t.equal((await server.send(`DELETE ${PODS}/p0?gracePeriodSeconds=0`)).status, 200);
  t.equal((await server.send(`GET ${PODS}/p0`)).status, 404);
});

t.test("writes check accept headers, media types, bodies and options in Kubernetes' order", async (t) => {
  await using server = await startTestServer();
  const wrong = "dryRun=Some";
  const [xml, html] = [{ "content-type": "application/xml" }, { accept: "text/html" }];
  const large = "x".repeat(3 * 2 ** 20 + 1);
  const cases: readonly (readonly [line: string, Parameters<TestServer["send"]>[1], status: number])[] = [
    [`POST ${MAPS}?${wrong}`, { body: "{", headers: { ...xml, ...html } }, 406],
    [`POST ${MAPS}?${wrong}`, { body: large, headers: xml }, 415],
    [`POST ${MAPS}?${wrong}`, { body: large }, 413],
    [`POST ${MAPS}?${wrong}`, { body: "{" }, 422],
    [`POST ${MAPS}`, { body: "{" }, 400],
    [`PUT ${MAPS}/a?${wrong}`, { body: "{", headers: { ...xml, ...html } }, 406],
    [`PUT ${MAPS}/a?${wrong}`, { body: large, headers: xml }, 413],
    [`PUT ${MAPS}/a?${wrong}`, { body: "{", headers: xml }, 422],
    [`PUT ${MAPS}/a`, { body: "{", headers: xml }, 415],
    [`PATCH ${MAPS}/a?${wrong}`, { body: "{", headers: { ...xml, ...html } }, 415],
    [`PATCH ${MAPS}/a?${wrong}`, { body: "{", headers: { ...MERGE, ...html } }, 406],
    [`PATCH ${MAPS}/a?${wrong}`, { body: large, headers: MERGE }, 413],
    [`PATCH ${MAPS}/a?${wrong}`, { body: "{", headers: MERGE }, 422],
    [`PATCH ${MAPS}/a`, { body: "{", headers: MERGE }, 404],
    ["PATCH /api/v1/namespaces/default", { body: "{", headers: MERGE }, 400],
    [`PATCH ${MAPS}/a`, { body: "{", headers: APPLY }, 422],
    [`DELETE ${MAPS}/a`, { body: "{", headers: { ...xml, ...html } }, 406],
    [`DELETE ${MAPS}/a`, { body: "{", headers: xml }, 415],
    [`DELETE ${MAPS}?resourceVersionMatch=Exact`, { body: "{", headers: xml }, 422],
  ];
  for (const [line, requests, status] of cases) {
    const response: TestResponse = await server.send(line, requests);
    t.equal(
      response.status,
      status,
      `${line} ${JSON.stringify(requests?.headers ?? {})}: ${response.text.slice(0, 150)}`,
    );
  }
});
