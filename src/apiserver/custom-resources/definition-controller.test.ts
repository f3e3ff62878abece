import t from "tap";
import {
  CRDS,
  CRONTABS,
  createDefinition,
  crontab,
  crontabSchema,
  crontabs,
  persistentStore,
  sharedVersions,
  v1,
  v1beta1,
  waitForResponse,
} from "../../testing/apiserver/extensions-fixture.ts";
import { readLines, startTestServer } from "../../testing/apiserver/server-fixture.ts";

const CRD = `${CRDS}/crontabs.stable.example.com`;
const API_SERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1.stable.example.com";

function causes(json: { readonly details?: { readonly causes?: readonly { readonly field?: string }[] } }): unknown {
  return json.details?.causes?.map(({ field }) => field);
}

t.test("startDefinitionController() serves a definition with validation, defaults, scale and columns", async (t) => {
  await using f = await startTestServer();
  t.equal((await f.send(`GET ${CRONTABS}`)).text, "404 page not found\n");
  await createDefinition(f, crontabs(v1));
  const { json: definition } = await f.send(`GET ${CRD}`);
  t.match(definition.status, {
    acceptedNames: { plural: "crontabs", singular: "crontab", kind: "CronTab", listKind: "CronTabList" },
    storedVersions: ["v1"],
    conditions: [
      { type: "NamesAccepted", status: "True", reason: "NoConflicts" },
      { type: "Established", status: "True", reason: "InitialNamesAccepted" },
    ],
  });
  t.match(definition.metadata.managedFields, [
    { manager: "kube-apiserver", subresource: "status", apiVersion: "apiextensions.k8s.io/v1" },
  ]);

  const { json: service } = await waitForResponse(f, `GET ${API_SERVICE}`, (answer) => answer.status === 200);
  t.match(service, { spec: { groupPriorityMinimum: 1000 }, status: { conditions: [{ reason: "Local" }] } });

  const wrong = crontab("a", { cronSpec: "never", replicas: 20 });
  const refused = await f.send(`POST ${CRONTABS}`, { body: wrong });
  t.equal(refused.status, 422);
  t.same(causes(refused.json), ["spec.cronSpec", "spec.replicas"]);
  const unlucky = await f.send(`POST ${CRONTABS}`, { body: crontab("a", { cronSpec: "* * * * *", replicas: 7 }) });
  t.match(unlucky.json.message, "seven brings bad luck");
  const strange = { ...crontab("a", { cronSpec: "* * * * *", imgae: "x" }), status: { replicas: 3 } };
  const strict = await f.send(`POST ${CRONTABS}?fieldValidation=Strict`, { body: strange });
  t.match(strict.json, { code: 400, message: /unknown field "spec.imgae"/ });
  const { status, json, headers } = await f.send(`POST ${CRONTABS}`, { body: strange });
  t.equal(status, 201);
  t.match(headers.warning, /unknown field .*spec.imgae/);
  t.match(json, { metadata: { generation: 1 }, spec: { cronSpec: "* * * * *", replicas: 1 } });
  t.notOk("imgae" in json.spec || "status" in json, "unknown fields are pruned, and a new object has no status");

  const merge = { "content-type": "application/merge-patch+json" };
  const patched = await f.send(`PATCH ${CRONTABS}/a`, { body: { spec: { image: "x" } }, headers: merge });
  t.match(patched.json, { metadata: { generation: 2 }, spec: { image: "x" } });
  const reported = await f.send(`PATCH ${CRONTABS}/a/status`, { body: { status: { replicas: 2 } }, headers: merge });
  t.match(reported.json, { metadata: { generation: 2 }, status: { replicas: 2 } });
  const scaled = await f.send(`PATCH ${CRONTABS}/a/scale`, { body: { spec: { replicas: 4 } }, headers: merge });
  t.match(scaled.json, { kind: "Scale", spec: { replicas: 4 }, status: { replicas: 2 } });
  const apply = { "content-type": "application/apply-patch+yaml" };
  const body = crontab("a", { cronSpec: "1 * * * *" });
  t.equal((await f.send(`PATCH ${CRONTABS}/a?fieldManager=me`, { body, headers: apply })).status, 409);
  const strategic = { "content-type": "application/strategic-merge-patch+json" };
  t.equal((await f.send(`PATCH ${CRONTABS}/a`, { body: {}, headers: strategic })).status, 415);

  const table = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
  const { json: rows } = await f.send(`GET ${CRONTABS}`, { headers: table });
  t.match(rows.rows, [{ cells: ["a", "* * * * *", 4] }]);
  t.equal((await f.send(`GET ${CRONTABS}?fieldSelector=spec.image%3Dx`)).json.items.length, 1);
  t.equal((await f.send(`GET ${CRONTABS}?fieldSelector=spec.image%3Dy`)).json.items.length, 0);
  t.match(await f.send(`DELETE ${CRONTABS}`), { status: 200 });
  t.match((await f.send(`GET ${CRONTABS}`)).json, { items: [], metadata: { continue: "" } });
});

t.test("startDefinitionController() ends watches when a definition is updated, and keeps its objects", async (t) => {
  await using f = await startTestServer();
  await createDefinition(f, crontabs(v1));
  await f.send(`POST ${CRONTABS}`, { body: crontab("a", { cronSpec: "* * * * *" }) });
  const before = await f.send("GET /openapi/v3/apis/stable.example.com/v1");
  const watch = readLines(await f.open(`GET ${CRONTABS}?watch=true`), 2);
  const { json: stored } = await f.send(`GET ${CRD}`);
  const properties = { ...crontabSchema.properties.spec.properties, zone: { type: "string", default: "UTC" } };
  const spec = { ...crontabSchema.properties.spec, properties };
  const schema = { openAPIV3Schema: { ...crontabSchema, properties: { ...crontabSchema.properties, spec } } };
  const body = { ...stored, spec: { ...stored.spec, versions: [{ ...v1, schema }, v1beta1] } };
  t.equal((await f.send(`PUT ${CRD}`, { body })).status, 200);
  await waitForResponse(f, "GET /apis/stable.example.com/v1beta1", ({ status }) => status === 200);
  t.match(await watch, [{ type: "ADDED", object: { metadata: { name: "a" } } }], "the watch ends");
  t.match(
    (await f.send(`GET ${CRONTABS}/a`)).json,
    { spec: { zone: "UTC" } },
    "the new default applies to stored objects",
  );
  const after = await f.send("GET /openapi/v3/apis/stable.example.com/v1");
  t.not(after.headers.etag, before.headers.etag);
  t.match(after.text, /zone/);

  const older = CRONTABS.replace("/v1/", "/v1beta1/");
  const answer = await f.send(`GET ${older}/a`);
  t.match(answer.json, { apiVersion: "stable.example.com/v1beta1", spec: { cronSpec: "* * * * *" } });
  t.match(answer.headers.warning, /stable.example.com\/v1beta1 CronTab is deprecated/);
  const young = { ...crontab("b", { cronSpec: "2 * * * *" }), apiVersion: "stable.example.com/v1beta1" };
  t.equal((await f.send(`POST ${older}`, { body: young })).status, 201);
  t.match((await f.send(`GET ${CRONTABS}/b`)).json, { apiVersion: "stable.example.com/v1", spec: { zone: "UTC" } });
  const { json: group } = await f.send("GET /apis/stable.example.com");
  t.match(group, { preferredVersion: { version: "v1" }, versions: [{ version: "v1" }, { version: "v1beta1" }] });
});

t.test("startDefinitionController() deletes all objects of a deleted definition, and rejects new ones", async (t) => {
  await using f = await startTestServer();
  await createDefinition(f, crontabs(v1));
  const held = crontab("held", { cronSpec: "* * * * *" });
  await f.send(`POST ${CRONTABS}`, {
    body: { ...held, metadata: { name: "held", finalizers: ["example.com/wait"] } },
  });
  await f.send(`POST ${CRONTABS}`, { body: crontab("free", { cronSpec: "* * * * *" }) });
  const { json: marked } = await f.send(`DELETE ${CRD}`);
  t.match(marked, {
    kind: "CustomResourceDefinition",
    metadata: { finalizers: ["customresourcecleanup.apiextensions.k8s.io"], generation: 1 },
  });
  t.match(marked.status.conditions.at(-1), { type: "Terminating", reason: "InstanceDeletionPending" });
  await waitForResponse(f, `GET ${CRONTABS}/free`, ({ status }) => status === 404);
  t.match((await f.send(`GET ${CRD}`)).json.status.conditions.at(-1), { reason: "InstanceDeletionInProgress" });
  const late = await f.send(`POST ${CRONTABS}`, { body: crontab("late", { cronSpec: "* * * * *" }) });
  t.match(late.json, {
    code: 405,
    message: "create not allowed while custom resource definition is terminating",
  });
  const merge = { "content-type": "application/merge-patch+json" };
  const watch = readLines(await f.open(`GET ${CRONTABS}?watch=true`), 4);
  await f.send(`PATCH ${CRONTABS}/held`, { body: { metadata: { finalizers: null } }, headers: merge });
  await f.clock.advance(500);
  await waitForResponse(f, `GET ${CRD}`, ({ status }) => status === 404);
  await waitForResponse(f, `GET ${CRONTABS}`, ({ text }) => text === "404 page not found\n");
  t.match(await watch, [{ type: "ADDED" }, { type: "DELETED" }]);
  t.notMatch((await f.send("GET /apis")).text, "stable.example.com");
  await waitForResponse(f, `GET ${API_SERVICE}`, ({ status }) => status === 404);
  await createDefinition(f, crontabs(v1));
  t.same((await f.send(`GET ${CRONTABS}`)).json.items, [], "a new definition of the same name has no objects");
});

t.test("startDefinitionController() reports conflicting names, and accepts them when they become free", async (t) => {
  await using f = await startTestServer();
  await createDefinition(f, crontabs(v1));
  const other = crontabs(v1);
  const rival = {
    ...other,
    metadata: { name: "tabs.stable.example.com" },
    spec: { ...other.spec, names: { plural: "tabs", kind: "CronTab" } },
  };
  t.equal((await f.send(`POST ${CRDS}`, { body: rival })).status, 201);
  const path = `GET ${CRDS}/tabs.stable.example.com`;
  const { json } = await waitForResponse(f, path, (answer) => answer.json.status?.conditions?.length === 2);
  t.match(json.status.conditions, [
    { type: "NamesAccepted", status: "False", reason: "ListKindConflict" },
    { type: "Established", status: "False", reason: "NotAccepted" },
  ]);
  t.equal((await f.send("GET /apis/stable.example.com/v1/tabs")).status, 404);
  await f.send(`DELETE ${CRD}`);
  await waitForResponse(f, "GET /apis/stable.example.com/v1/tabs", ({ status }) => status === 200);
});

t.test("startDefinitionController() serves stored definitions after a restart", async (t) => {
  const lasting = persistentStore();
  {
    await using f = await startTestServer({}, { store: lasting });
    await createDefinition(f, crontabs(...sharedVersions));
    await f.send(`POST ${CRONTABS}`, { body: crontab("a", { cronSpec: "* * * * *" }) });
  }
  await using f = await startTestServer({}, { store: lasting });
  t.match((await f.send(`GET ${CRONTABS}/a`)).json, { metadata: { name: "a" } });
  t.equal((await f.send("GET /apis/stable.example.com/v1beta1/crontabs")).json.items.length, 1);
});
