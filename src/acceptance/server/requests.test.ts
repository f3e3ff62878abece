import t from "tap";
import { podKind } from "../../api/core/pod/kind.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import { decodeEnvelope, encodeEnvelope } from "../../schema/protobuf/envelope.ts";
import { readLines, startTestServer } from "../../testing/apiserver/server-fixture.ts";

const MAPS = "/api/v1/namespaces/default/configmaps";
const PODS = "/api/v1/namespaces/default/pods";
const pod = { metadata: { name: "web" }, spec: { containers: [{ name: "c", image: "busybox" }] } };

t.test("objects are returned with the group alias of the request, from the cached bytes", async (t) => {
  await using server = await startTestServer();
  const created = await server.send(`POST ${MAPS}`, {
    body: { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "a" } },
  });
  t.equal(created.status, 201);
  t.match(created.text, /^\{"kind":"ConfigMap","apiVersion":"v1","metadata":\{"name":"a"/);
  t.match(created.headers, { "content-type": "application/json", "cache-control": "no-cache, private" });
  t.match(created.headers["audit-id"], /^[0-9a-f-]{36}$/);
  t.equal((await server.send(`GET ${MAPS}/a`)).text, created.text);
  const list = await server.send(`GET ${MAPS}`);
  t.match(
    list.text,
    /^\{"kind":"ConfigMapList","apiVersion":"v1","metadata":\{"resourceVersion":"\d+"\},"items":\[\{"metadata"/,
  );
  const leases = "/namespaces/default/leases";
  for (const group of ["coordination.k8s.io", "coordination.svc.io"]) {
    const name = group.replaceAll(".", "-");
    const path = `/apis/${group}/v1${leases}`;
    t.equal((await server.send(`POST ${path}`, { body: { metadata: { name } } })).json.apiVersion, `${group}/v1`);
    t.equal((await server.send(`GET ${path}`)).json.apiVersion, `${group}/v1`);
  }
  t.equal((await server.send(`GET /apis/coordination.k8s.io/v1${leases}`)).json.items.length, 2);
  const either = { apiVersion: "coordination.svc.io/v1", kind: "Lease", metadata: { name: "either" } };
  t.equal((await server.send(`POST /apis/coordination.k8s.io/v1${leases}`, { body: either })).status, 201);
});

t.test("without aliases the server serves one name of a group", async (t) => {
  await using server = await startTestServer({ groupAliases: { served: false, listed: false } });
  t.equal((await server.send("GET /apis/coordination.svc.io/v1/leases")).status, 200);
  t.equal((await server.send("GET /apis/coordination.k8s.io/v1/leases")).status, 404);
  t.notMatch((await server.send("GET /apis")).text, /k8s\.io/);
});

t.test("unknown paths and methods get Kubernetes' errors", async (t) => {
  await using server = await startTestServer();
  for (const [line, status, text] of [
    ["GET /nope", 404, /^404 page not found\n$/],
    ["GET /apis/nope.example.com/v1", 404, /^404 page not found\n$/],
    ["GET /apis/coordination.k8s.io/v9/leases", 404, /the server could not find the requested resource/],
    ["GET /api/v1/namespaces/default/widgets", 404, /could not find the requested resource/],
    ["GET /api/v1/pods/x", 404, /could not find the requested resource/],
    ["GET /api/v1/namespaces/default/nodes", 404, /could not find the requested resource/],
    ["GET /api/v1/namespaces/default/bindings", 405, /does not allow this method on the requested resource/],
    ["HEAD /api/v1/namespaces/default/pods", 405, /does not allow this method/],
    ["DELETE /api/v1/namespaces", 405, /does not allow this method/],
    ["GET /api/v1/namespaces/default/pods//status", 400, /name must be provided/],
    ["GET /api/v1/namespaces/default%2fpods/a", 404, /pods \\"a\\" not found/],
    ["GET /api/v1/namespaces//pods/a", 400, /Namespace parameter required/],
    ["GET /api/v1/namespaces/%2e%2e/pods", 500, /invalid key: \\"\/pods\/\.\.\\"/],
    ["GET /api/v1/watch", 500, /unable to determine kind and namespace from url, \/api\/v1\/watch/],
    ["GET /version/", 200, /gitVersion/],
    ["GET /metrics/", 404, /page not found/],
    ["GET /openapi/v2/", 404, /page not found/],
    ["FOO /apis/apps", 200, /APIGroup/],
    ["FOO /healthz", 200, /ok/],
    ["FOO /api/v1/pods", 405, /does not allow this method/],
    ["GET /api/v1/namespaces/default/pods/a%25b", 400, /may not contain '%'/],
    ["GET /api/v1/namespaces/default/pods/%2e%2e", 400, /may not be '\.\.'/],
  ] as const) {
    const response = await server.send(line);
    t.equal(response.status, status, line);
    t.match(response.text, text, line);
  }
});

t.test("a forbidden request gets 403 with Kubernetes' message", async (t) => {
  await using server = await startTestServer({ authorizationModes: ["RBAC"] });
  t.match((await server.send(`GET ${PODS}`, { user: "bob" })).json, {
    code: 403,
    message: `pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default"`,
  });
  t.match((await server.send("GET /metrics", { user: "bob" })).json, {
    code: 403,
    message: `forbidden: User "bob" cannot get path "/metrics"`,
  });
  t.equal((await server.send("GET /readyz", { user: "" })).status, 200);
  t.equal((await server.send("GET /api", { headers: { authorization: "Bearer wrong" } })).status, 401);
});

t.test("unknown tokens and anonymous requests get 401 when anonymous requests are disabled", async (t) => {
  await using server = await startTestServer({
    authentication: { ...defaultConfig.authentication, anonymous: false },
  });
  t.match((await server.send("GET /api", { user: "" })).json, { code: 401, reason: "Unauthorized" });
});

t.test("unknown fields result in warnings, or in 400 with fieldValidation=Strict", async (t) => {
  await using server = await startTestServer();
  const body = `{"metadata":{"name":"a"},"data":{"k":"1","k":"2"},"Data":{}}`;
  const warned = await server.send(`POST ${MAPS}?dryRun=All`, { body });
  t.equal(warned.status, 201);
  t.same(warned.headers.warning, ['299 - "duplicate field \\"data.k\\""', '299 - "unknown field \\"Data\\""']);
  const ignored = await server.send(`POST ${MAPS}?dryRun=All&fieldValidation=Ignore`, { body });
  t.equal(ignored.headers.warning, undefined);
  const strict = await server.send(`POST ${MAPS}?dryRun=All&fieldValidation=Strict`, { body });
  t.match(strict.json, {
    code: 400,
    message: /strict decoding error: duplicate field "data\.k", unknown field "Data"$/,
  });
  t.equal((await server.send(`GET ${MAPS}/a`)).status, 404);
});

t.test("the server reads and writes YAML", async (t) => {
  await using server = await startTestServer();
  const yaml = { "content-type": "application/yaml", accept: "application/yaml" };
  const body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n";
  const created = await server.send(`POST ${MAPS}`, { body, headers: yaml });
  t.equal(created.status, 201);
  t.match(created.text, /^apiVersion: v1\ndata:\n {2}k: v\nkind: ConfigMap\n/);
  t.match((await server.send(`GET ${MAPS}/none`, { headers: yaml })).text, /^apiVersion: v1\ncode: 404\n/);
  t.equal((await server.send(`GET ${MAPS}?watch=1`, { headers: yaml })).status, 406);
  const wrong = await server.send(`POST ${MAPS}`, { body: "a: b: c", headers: yaml });
  t.match(wrong.text, /yaml: mapping\s+values are not allowed/);
});

t.test("the server reads and writes protobuf, with both magic prefixes", async (t) => {
  await using server = await startTestServer();
  for (const [magic, type] of [
    ["k8s", "application/vnd.kubernetes.protobuf"],
    ["svc", "application/vnd.svc.protobuf"],
  ] as const) {
    const headers = { "content-type": type, accept: type };
    const raw = encodeProtobuf(podKind.schema, { ...pod, metadata: { name: magic } });
    const created = await server.send(`POST ${PODS}`, {
      body: encodeEnvelope(magic, { apiVersion: "v1", kind: "Pod" }, raw),
      headers,
    });
    t.equal(created.status, 201, created.text);
    const found = await server.send(`GET ${PODS}/${magic}`, { headers });
    t.equal(found.headers["content-type"], type);
    const envelope = decodeEnvelope(found.bytes);
    t.match(envelope, { magic, apiVersion: "v1", kind: "Pod" });
    t.match(decodeProtobuf(podKind.schema, envelope.raw), {
      metadata: { name: magic },
      spec: { restartPolicy: "Always" },
    });
    const list = decodeEnvelope((await server.send(`GET ${PODS}`, { headers })).bytes);
    t.equal(list.kind, "PodList");
    const partial = { accept: `${type};as=PartialObjectMetadata;g=meta.k8s.io;v=v1` };
    const metadata = decodeEnvelope((await server.send(`GET ${PODS}/${magic}`, { headers: partial })).bytes);
    t.match(metadata, { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1" });
  }
  const broken = await server.send(`POST ${PODS}`, {
    body: Buffer.from("k8s\0\x0a\x03abc"),
    headers: { "content-type": "application/vnd.kubernetes.protobuf" },
  });
  t.match(broken.json, { code: 400, message: /the object provided is unrecognized/ });
});

t.test("the server returns tables and PartialObjectMetadata", async (t) => {
  await using server = await startTestServer();
  await server.send(`POST ${PODS}`, { body: pod });
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
  const table = (await server.send(`GET ${PODS}`, { headers: { accept } })).json;
  t.match(table, { kind: "Table", apiVersion: "meta.k8s.io/v1", metadata: { resourceVersion: /^\d+$/ } });
  t.same(table.columnDefinitions.map((column: { name: string }) => column.name).slice(0, 5), [
    "Name",
    "Ready",
    "Status",
    "Restarts",
    "Age",
  ]);
  t.match(table.rows, [{ cells: ["web", "0/1", "Pending"], object: { kind: "PartialObjectMetadata" } }]);
  await server.clock.advance(5000);
  const own = { accept: "application/json;as=Table;v=v1;g=meta.svc.io" };
  const later = (await server.send(`GET ${PODS}/web?includeObject=Object`, { headers: own })).json;
  t.equal(later.apiVersion, "meta.svc.io/v1");
  t.equal(later.rows[0].cells[4], "5s");
  t.match(later.rows[0].object, { kind: "Pod", spec: { containers: [{ name: "c" }] } });
  t.equal((await server.send(`GET ${PODS}?includeObject=x`, { headers: { accept } })).status, 422);
  const list = { accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io" };
  const partial = (await server.send(`GET ${PODS}`, { headers: list })).json;
  t.match(partial, { kind: "PartialObjectMetadataList", items: [{ metadata: { name: "web" } }] });
  t.equal(partial.items[0].spec, undefined);
  t.equal((await server.send(`GET ${PODS}`, { headers: { accept: "text/html" } })).status, 406);
});

t.test("a watch streams one event per line until timeoutSeconds", async (t) => {
  await using server = await startTestServer();
  const { resourceVersion } = (await server.send(`GET ${MAPS}`)).json.metadata;
  const line = `GET ${MAPS}?watch=1&resourceVersion=${resourceVersion}&timeoutSeconds=10&allowWatchBookmarks=true`;
  const stream = await server.open(line);
  t.equal(stream.headers["content-type"], "application/json");
  await server.send(`POST ${MAPS}`, { body: { metadata: { name: "a" } } });
  await server.send(`DELETE ${MAPS}/a`);
  const reading = readLines(stream, 100);
  await server.clock.advance(10_000);
  t.match(await reading, [
    { type: "ADDED", object: { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "a" } } },
    { type: "DELETED", object: { kind: "ConfigMap", metadata: { name: "a" } } },
  ]);
});

t.test("deprecated watch paths work", async (t) => {
  await using server = await startTestServer();
  for (const name of ["one", "two"]) {
    await server.send(`POST ${MAPS}`, { body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name } } });
  }
  const old = MAPS.replace("/api/v1/", "/api/v1/watch/");
  const all = await readLines(await server.open(`GET ${old}`), 2);
  t.match(all, [{ type: "ADDED" }, { type: "ADDED" }]);
  const [event] = await readLines(await server.open(`GET ${old}/two`), 1);
  t.match(event, { type: "ADDED", object: { metadata: { name: "two" } } });
});

t.test("watches end when the server stops, and an expired resourceVersion gets 410", async (t) => {
  await using server = await startTestServer();
  await server.send(`GET ${MAPS}`);
  const old = await readLines(await server.open(`GET ${MAPS}?watch=1&resourceVersion=1`), 10);
  t.match(old, [{ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } }]);
  const open = await server.open(`GET ${MAPS}?watch=1`);
  const reading = readLines(open, 10);
  server.parts.endWatches();
  t.same(await reading, []);
});

t.test("a watch may send the initial events when the feature gate WatchList is enabled", async (t) => {
  const query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
  await using off = await startTestServer();
  t.match((await off.send(`GET ${MAPS}?${query}`)).json, { code: 422, message: /unless the WatchList feature gate/ });
  await using on = await startTestServer({ watchList: true });
  await on.send(`POST ${MAPS}`, { body: { metadata: { name: "a" } } });
  const annotations = { "k8s.io/initial-events-end": "true" };
  t.match(await readLines(await on.open(`GET ${MAPS}?${query}`), 2), [
    { type: "ADDED", object: { metadata: { name: "a" } } },
    { type: "BOOKMARK", object: { kind: "ConfigMap", metadata: { annotations } } },
  ]);
});

t.test("a watch of a table sends column definitions once", async (t) => {
  await using server = await startTestServer();
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
  for (const name of ["a", "b"]) await server.send(`POST ${MAPS}`, { body: { metadata: { name } } });
  const events = await readLines(await server.open(`GET ${MAPS}?watch=1`, { headers: { accept } }), 2);
  t.match(events, [
    { type: "ADDED", object: { kind: "Table", columnDefinitions: [{ name: "Name" }], rows: [{ cells: ["a"] }] } },
    { type: "ADDED", object: { columnDefinitions: null, rows: [{ cells: ["b"] }] } },
  ]);
});

t.test("the server applies JSON, merge and strategic merge patches", async (t) => {
  await using server = await startTestServer();
  await server.send(`POST ${MAPS}`, { body: { metadata: { name: "a" }, data: { k: "1" } } });
  const send = (type: string, body: unknown, query = "") =>
    server.send(`PATCH ${MAPS}/a${query}`, { body, headers: { "content-type": `application/${type}` } });
  t.same((await send("merge-patch+json", { data: { l: "2" } })).json.data, { k: "1", l: "2" });
  t.same((await send("json-patch+json", [{ op: "remove", path: "/data/l" }])).json.data, { k: "1" });
  t.same((await send("strategic-merge-patch+json", { data: { m: "3" } })).json.data, { k: "1", m: "3" });
  t.match((await send("apply-patch+yaml", {})).json, { code: 422, message: /fieldManager: Required value/ });
  t.equal((await send("nonsense", {})).status, 415);
  t.match((await send("merge-patch+json", { kind: "Secret" })).json, { code: 422, message: /patch: Invalid value/ });
  t.match((await send("merge-patch+json", { data: { x: 1 } })).json, { code: 422, message: /cannot unmarshal number/ });
  t.equal((await send("merge-patch+json", "[]")).status, 400);
  t.equal((await send("json-patch+json", "{}")).status, 400);
  t.equal((await send("merge-patch+json", "{")).status, 400);
  t.match((await send("merge-patch+json", { foo: 1 }, "?fieldValidation=Strict")).json, { message: /unknown field/ });
  const warned = await send("merge-patch+json", `{"data":{"a":"1","a":"2"}}`);
  t.match(warned.headers.warning, /duplicate field \\"data\.a\\"/);
});

t.test("a delete returns a Status or the object, as in Kubernetes", async (t) => {
  await using server = await startTestServer();
  await server.send(`POST ${MAPS}`, { body: { metadata: { name: "a" } } });
  const { json } = await server.send(`DELETE ${MAPS}/a`, { body: { kind: "DeleteOptions", apiVersion: "apps/v1" } });
  t.match(json, { kind: "Status", status: "Success", details: { name: "a", kind: "configmaps" } });
  t.equal(json.code, undefined);
  await server.send(`POST ${PODS}`, { body: { ...pod, spec: { ...pod.spec, nodeName: "n" } } });
  t.equal((await server.send(`DELETE ${PODS}/web?orphanDependents=false`)).status, 202);
  t.match((await server.send(`DELETE ${PODS}/web?gracePeriodSeconds=0`)).json, { kind: "Pod" });
  t.equal((await server.send(`DELETE ${PODS}/web`)).status, 404);
  t.equal((await server.send(`DELETE ${MAPS}?propagationPolicy=x`)).status, 422);
  t.match((await server.send(`DELETE ${MAPS}`)).json, { kind: "ConfigMapList", items: [] });
});

t.test("invalid query parameters get Kubernetes' errors", async (t) => {
  await using server = await startTestServer();
  for (const [line, status] of [
    [`GET ${MAPS}?limit=x`, 400],
    [`GET ${MAPS}?limit=-1`, 200],
    [`GET ${MAPS}?resourceVersion=x`, 400],
    [`GET ${MAPS}?resourceVersionMatch=Exact`, 422],
    [`GET ${MAPS}?labelSelector=,`, 400],
    [`GET ${MAPS}?timeout=1`, 400],
    [`POST ${MAPS}?dryRun=yes`, 422],
    [`PUT ${MAPS}/a?dryRun=yes`, 422],
    [`POST ${MAPS}?fieldManager=${"x".repeat(200)}`, 422],
    [`POST ${MAPS}?fieldValidation=Maybe`, 422],
    [`PATCH ${MAPS}/a?force=true`, 422],
  ] as const) {
    const type = line.startsWith("PATCH") ? "application/merge-patch+json" : "application/json";
    t.equal((await server.send(line, { body: "{}", headers: { "content-type": type } })).status, status, line);
  }
  t.equal((await server.send(`POST ${MAPS}`, { body: "x".repeat(3 * 2 ** 20 + 1) })).status, 413);
});

t.test("requests get 504 after the request timeout", async (t) => {
  await using server = await startTestServer();
  const future = server.send(`GET ${MAPS}?resourceVersion=1000&timeout=1s`);
  await server.clock.advance(1000);
  t.match((await future).json, { code: 504, reason: "Timeout" });
});

t.test("creates in a missing namespace get 404, and a finalized namespace is deleted", async (t) => {
  await using server = await startTestServer();
  const missing = await server.send("POST /api/v1/namespaces/none/configmaps", { body: { metadata: { name: "a" } } });
  t.match(missing.json, { code: 404, message: `namespaces "none" not found` });
  await server.send("POST /api/v1/namespaces", { body: { metadata: { name: "x" } } });
  t.match((await server.send("DELETE /api/v1/namespaces/x")).json, { status: { phase: "Terminating" } });
  const body = { metadata: { name: "x" }, spec: { finalizers: [] } };
  t.equal((await server.send("PUT /api/v1/namespaces/x/finalize", { body })).status, 200);
  t.equal((await server.send("GET /api/v1/namespaces/x")).status, 404);
  const names = (await server.send("GET /api/v1/namespaces")).json.items.map(
    (item: { metadata: { name: string } }) => item.metadata.name,
  );
  t.same(names, ["default", "kube-node-lease", "kube-public", "kube-system", "svc-system"]);
});

t.test("pods are bound through pods/binding and bindings", async (t) => {
  await using server = await startTestServer();
  for (const name of ["a", "b"]) await server.send(`POST ${PODS}`, { body: { ...pod, metadata: { name } } });
  const target = { kind: "Node", name: "n1" };
  const body = { kind: "Binding", apiVersion: "v1", metadata: { name: "a" }, target };
  t.match((await server.send(`POST ${PODS}/a/binding`, { body })).json, { status: "Success", code: 201 });
  const older = { ...body, metadata: { name: "b" } };
  t.equal((await server.send("POST /api/v1/namespaces/default/bindings", { body: older })).status, 201);
  t.equal((await server.send(`GET /api/v1/pods?fieldSelector=spec.nodeName=n1`)).json.items.length, 2);
  t.equal((await server.send(`POST ${PODS}/a/binding`, { body })).status, 409);
});

t.test("component statuses are computed on request", async (t) => {
  await using server = await startTestServer({ embeddedControllers: ["scheduler"] });
  const list = await server.send("GET /api/v1/componentstatuses");
  t.match(list.headers.warning, /v1 ComponentStatus is deprecated/);
  t.match(list.json, {
    kind: "ComponentStatusList",
    items: [
      { metadata: { name: "controller-manager" } },
      { metadata: { name: "etcd-0" } },
      { conditions: [{ status: "True" }] },
    ],
  });
  const one = await server.send("GET /api/v1/componentstatuses/etcd-0", {
    headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" },
  });
  t.same(one.json.rows[0].cells, ["etcd-0", "Healthy", "ok", ""]);
  const none = await server.send("GET /api/v1/componentstatuses/nope");
  t.match(none.json, { code: 404, message: 'componentstatus "nope" not found' });
});
