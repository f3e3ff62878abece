/** Conversion webhooks that are unavailable, slow, or respond with invalid objects. */
import t from "tap";
import { rootMembersMax, valuesMax } from "../../../schema/value/limits.ts";
import { caBundle, startTestWebhook } from "../../../testing/admission/webhook-fixture.ts";
import {
  type ConversionWebhookServer,
  conversionResponse,
  convertRoute,
  convertRoutes,
  ROUTES,
  route,
  routes,
  startConversionWebhook,
  type Version,
  type WebhookResponder,
} from "../../../testing/apiserver/conversion-fixture.ts";
import { CRDS, createDefinition, waitForResponse } from "../../../testing/apiserver/extensions-fixture.ts";
import { readLines, startTestServer, type TestServer } from "../../../testing/apiserver/server-fixture.ts";
import type { FakeClock } from "../../../testing/std/fake-clock.ts";

const CRD = `${CRDS}/routes.stable.example.com`;
const FROM_V1 = "conversion webhook for stable.example.com/v1, Kind=Route ";

function at(version: Version, rest = ""): string {
  return `${ROUTES}/${version}/namespaces/default/routes${rest}`;
}

/** A server with one route that is stored as v1, and its webhook. */
async function withRoute(
  storage: Version = "v1",
): Promise<{ readonly f: TestServer; readonly server: ConversionWebhookServer }> {
  const server = await startConversionWebhook();
  const f = await startTestServer();
  await createDefinition(f, routes(server.hook, storage));
  await f.send(`POST ${at("v1")}`, { body: route("one", { hostPort: "a:1" }) });
  return { f, server };
}

/** Responds with the changed conversion of each object. */
function making(
  change: (made: { metadata: Record<string, unknown> } & Record<string, unknown>) => unknown,
): WebhookResponder {
  return (call) => {
    const { objects, desiredAPIVersion } = call.review.request;
    const made = objects.map((one: Parameters<typeof convertRoute>[0]) => convertRoute(one, desiredAPIVersion));
    return conversionResponse(call, made.map(change));
  };
}

function answering(response: object, more: object = {}): WebhookResponder {
  return ({ review }) => ({
    ...review,
    request: undefined,
    ...more,
    response: { uid: review.request.uid, ...response },
  });
}

const success = { result: { status: "Success" } };
const invalid = `${FROM_V1}returned invalid object`;

const invalidResponses: readonly (readonly [what: string, answer: WebhookResponder, message: string | RegExp])[] = [
  ["no objects", answering(success), `${FROM_V1}returned 0 objects, expected 1`],
  ["a failure", answering({ result: { status: "Failure", message: "not today" } }), `${FROM_V1}failed: not today`],
  [
    "an empty status",
    answering({ result: { status: "" } }),
    `${FROM_V1}failed: response.result.status was '', not 'Success'`,
  ],
  [
    "nothing",
    () => ({}),
    /failed: expected webhook response of apiextensions.k8s.io\/v1, Kind=ConversionReview, got \/, Kind=$/,
  ],
  ["no response", ({ review }) => ({ ...review, request: undefined }), `${FROM_V1}failed: no response provided`],
  [
    "another version",
    answering(success, { apiVersion: "apiextensions.k8s.io/v1beta1" }),
    /Kind=ConversionReview, got apiextensions.k8s.io\/v1beta1, Kind=ConversionReview$/,
  ],
  ["another's answer", answering({ ...success, uid: "x" }), /failed: expected response.uid="[0-9a-f-]{36}", got "x"$/],
  ["no object", making(() => null), `${invalid} at index 0: Object 'Kind' is missing in 'null'`],
  [
    "the same version",
    making((made) => ({ ...made, apiVersion: "stable.example.com/v1" })),
    `${invalid} at index 0: invalid groupVersion (expected stable.example.com/v2, received stable.example.com/v1)`,
  ],
  [
    "another kind",
    making((made) => ({ ...made, kind: "Way" })),
    `${invalid} at index 0: invalid kind (expected Route, received Way)`,
  ],
  [
    "more values than a request may have",
    making((made) => ({ ...made, spec: { many: Array<number>(valuesMax).fill(1) } })),
    `${invalid} at index 0: more than ${valuesMax} values`,
  ],
  [
    "more members at its root than a request may have",
    making((made) => ({
      ...made,
      ...Object.fromEntries(Array.from({ length: rootMembersMax }, (_, i) => [`m${i}`, 1])),
    })),
    `${invalid} at index 0: more than ${rootMembersMax} members at the root`,
  ],
  [
    "another name",
    making((made) => ({ ...made, metadata: { ...made.metadata, name: "two" } })),
    `${invalid}: must have the same name: one != two`,
  ],
  [
    "another namespace",
    making((made) => ({ ...made, metadata: { ...made.metadata, namespace: "x" } })),
    `${invalid}: must have the same namespace: default != x`,
  ],
  [
    "another uid",
    making((made) => ({ ...made, metadata: { ...made.metadata, uid: "" } })),
    /returned invalid object: must have the same UID: [0-9a-f-]{36} != $/,
  ],
  [
    "labels that are not strings",
    making((made) => ({ ...made, metadata: { ...made.metadata, labels: { a: 1 } } })),
    `${FROM_V1}returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object`,
  ],
  [
    "invalid label values",
    making((made) => ({ ...made, metadata: { ...made.metadata, labels: { a: "?" } } })),
    /returned invalid metadata: metadata.labels: Invalid value: "\?": a valid label must be/,
  ],
  [
    "a list of annotations",
    making((made) => ({ ...made, metadata: { ...made.metadata, annotations: [] } })),
    `${FROM_V1}returned invalid metadata: invalid metadata.annotations of type []interface {} in converted object`,
  ],
  ["text", () => [200, "<html>"], /failed: Post .*: couldn't get version\/kind; json parse error/],
  [
    "an error",
    () => [500, "broken"],
    /failed: an error on the server \("broken"\) has prevented the request from succeeding$/,
  ],
  [
    "too many values",
    () => [200, `[${"1,".repeat(500_000)}1]`],
    /failed: Post .*: its response has more than 500000 values$/,
  ],
  ["too much", () => [200, " ".repeat(17 * 2 ** 20)], /failed: Post .*: its response is longer than 16777216 bytes$/],
];

t.test("invalid responses of conversion webhooks result in Kubernetes' error messages", async (t) => {
  const { f, server } = await withRoute();
  await using _hook = server.hook;
  await using _server = f;
  for (const [what, answer, message] of invalidResponses) {
    server.respond = answer;
    const { status, json } = await f.send(`GET ${at("v2", "/one")}`);
    t.match([status, json], [500, { status: "Failure", message }], what);
    t.notOk("reason" in json, "without a reason");
  }
  server.respond = convertRoutes;
  t.match((await f.send(`GET ${at("v2", "/one")}`)).json.spec, { host: "a" });
});

t.test("conversion webhooks change labels and annotations, and no other metadata", async (t) => {
  const { f, server } = await withRoute();
  await using _hook = server.hook;
  await using _server = f;
  server.respond = making((made) => ({
    ...made,
    metadata: { name: "one", namespace: "default", uid: made.metadata.uid, labels: { a: "b" }, finalizers: ["x.y/z"] },
  }));
  const { json } = await f.send(`GET ${at("v2", "/one")}`);
  t.same(json.metadata.labels, { a: "b" });
  t.notOk("finalizers" in json.metadata);
  t.match(json.metadata, { generation: 1, creationTimestamp: /Z$/, managedFields: [{ operation: "Update" }] });
});

t.test("unavailable conversion webhooks affect versions other than the storage version only", async (t) => {
  const { f, server } = await withRoute();
  await using _server = f;
  await using hook = server.hook;
  t.equal((await f.send(`GET ${at("v2")}`)).status, 200);
  const opened = await f.open(`GET ${at("v2")}?watch=true`);
  const watch = readLines(opened, 100);
  server.respond = () => [503, ""];
  t.equal((await f.send(`POST ${at("v1")}`, { body: route("two", { hostPort: "b:2" }) })).status, 201);
  t.match(await watch, [{ type: "ADDED", object: { metadata: { name: "one" } } }], "the watch ends");
  t.match((await f.send(`GET ${at("v1")}`)).json.items, [{}, {}]);
  const message = `${FROM_V1}failed: the server is currently unable to handle the request`;
  const tries: readonly (readonly [string, object?])[] = [
    [`GET ${at("v2", "/one")}`],
    [`GET ${at("v2")}`],
    [`DELETE ${at("v2", "/one")}`],
    [`PUT ${at("v2", "/one")}`, route("one", { host: "c", port: "1" })],
  ];
  for (const [line, body] of tries) t.match((await f.send(line, { body })).json, { code: 500, message }, line);
  const created = await f.send(`POST ${at("v2")}`, { body: route("three", { host: "c", port: "3" }) });
  t.match(created.json, { code: 500, message: message.replace("/v1,", "/v2,") });
  const turned = await f.send(`GET ${at("v2")}?watch=true`);
  t.match(turned.json, { code: 429, reason: "TooManyRequests", message: "storage is (re)initializing" });
  t.equal(turned.headers["retry-after"], "1");
  t.equal((await f.send("GET /readyz")).text, "ok");

  server.respond = convertRoutes;
  t.match((await f.send(`GET ${at("v2")}`)).json.items, [{ spec: { host: "a" } }, { spec: { host: "b" } }]);
  // An expired resourceVersion: the watch ends.
  const turnedAway = async () => (await f.send(`GET ${at("v2")}?watch=true&resourceVersion=1`)).status === 429;
  await advanced(f.clock, async () => !(await turnedAway()));
  const again = readLines(await f.open(`GET ${at("v2")}?watch=true`), 3);
  await f.send(`DELETE ${at("v1", "/two")}`);
  t.match(await again, [{ type: "ADDED" }, { type: "ADDED" }, { type: "DELETED", object: { spec: { host: "b" } } }]);
  t.ok(hook.received.length > 0);
});

/** Advances the clock until the condition holds. */
async function advanced(clock: FakeClock, holds: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 100; i++) {
    if (await holds()) return;
    await clock.advance(1000);
  }
  throw new Error("the condition does not hold");
}

t.test("conversion webhooks must respond within the timeout and have a trusted certificate", async (t) => {
  const { f, server } = await withRoute();
  await using _server = f;
  await using hook = server.hook;
  server.respond = () => "hang";
  const late = f.send(`GET ${at("v2", "/one")}`);
  for (let i = 0; i < 200 && hook.received.length === 0; i++) await f.send("GET /healthz");
  server.respond = convertRoutes;
  await f.clock.advance(30_000);
  t.match(
    (await late).json,
    { spec: { host: "a" } },
    "the list of the cache failed, and the object was read from the store",
  );

  await using other = await startTestWebhook(convertRoutes);
  const { json: definition } = await f.send(`GET ${CRD}`);
  const serve = async (clientConfig: object): Promise<string> => {
    const { spec } = routes(hook, "v1", { clientConfig });
    const body = { ...(await f.send(`GET ${CRD}`)).json, spec: { ...definition.spec, conversion: spec.conversion } };
    t.equal((await f.send(`PUT ${CRD}`, { body })).status, 200);
    const calls = hook.received.length;
    const { json } = await waitForResponse(f, `GET ${at("v2", "/one")}`, ({ status }) => status === 500);
    t.equal(hook.received.length, calls, "the other webhook is not called");
    return json.message;
  };
  t.match(await serve({ url: other.url }), /x509: certificate signed by unknown authority$/);
  const service = { namespace: "default", name: "hooks", path: "/convert" };
  t.equal(
    await serve({ service, caBundle }),
    `${FROM_V1}failed: Post "https://hooks.default.svc:443/convert?timeout=30s": service "hooks" not found`,
  );
});

t.test("conversion webhooks may support v1beta1 reviews, whose responses have no uid", async (t) => {
  const server = await startConversionWebhook();
  await using hook = server.hook;
  await using f = await startTestServer();
  await createDefinition(f, routes(hook, "v1", { conversionReviewVersions: ["v3", "v1beta1", "v1"] }));
  await f.send(`POST ${at("v1")}`, { body: route("one", { hostPort: "a:1" }) });
  server.respond = (call) => ({ response: { ...(convertRoutes(call) as { response: object }).response, uid: "" } });
  t.match((await f.send(`GET ${at("v2", "/one")}`)).json.spec, { host: "a" });
  t.equal(hook.received[0]?.review.apiVersion, "apiextensions.k8s.io/v1beta1");
});

t.test("calls of conversion webhooks are counted", async (t) => {
  const { f, server } = await withRoute();
  await using _server = f;
  await using _hook = server.hook;
  server.respond = answering(success);
  await f.send(`GET ${at("v2", "/one")}`);
  server.respond = convertRoutes;
  await f.send(`GET ${at("v2", "/one")}`);
  const { text } = await f.send("GET /metrics");
  const partial = 'failure_type="conversion_webhook_partial_response_failure",result="failure"';
  t.match(text, "# TYPE apiserver_conversion_webhook_request_total counter");
  t.match(text, `apiserver_conversion_webhook_request_total{${partial}} `);
  t.match(text, 'apiserver_conversion_webhook_request_total{failure_type="",result="success"} 1');
  t.match(text, `apiserver_conversion_webhook_duration_seconds_count{${partial}} `);
  const labels = 'crd_name="routes.stable.example.com",from_version="v1",succeeded="true",to_version="v2"';
  t.match(text, `apiserver_crd_conversion_webhook_duration_seconds_count{${labels}} 1`);
});

t.test("a definition is deleted although its webhook is gone", async (t) => {
  const { f, server } = await withRoute("v1");
  await using _server = f;
  const { json: one } = await f.send(`GET ${at("v1", "/one")}`);
  await f.send(`PUT ${at("v1", "/one")}`, {
    body: { ...one, metadata: { ...one.metadata, finalizers: ["example.com/wait"] } },
  });
  await f.send(`POST ${at("v1")}`, { body: route("two", { hostPort: "b:2" }) });
  const { json: definition } = await f.send(`GET ${CRD}`);
  const { spec } = routes(server.hook, "v2");
  t.equal((await f.send(`PUT ${CRD}`, { body: { ...definition, spec } })).status, 200);
  await waitForResponse(f, `GET ${at("v2", "/one")}`, ({ status }) => status === 200);
  await server.hook[Symbol.asyncDispose]();
  await f.send(`DELETE ${CRD}`);
  await waitForResponse(f, `GET ${at("v2", "/two")}`, ({ status }) => status === 404);
  t.match((await f.send(`GET ${at("v2", "/one")}`)).json.spec, { host: "a" }, "the object with a finalizer stays");
  t.match((await f.send(`GET ${CRD}`)).json.metadata, { deletionTimestamp: /Z$/ });
});
