import t from "tap";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";

const MAPS = "/api/v1/namespaces/default/configmaps";

function applier(server: TestServer, user?: string) {
  return (query: string, body: unknown) =>
    server.send(`PATCH ${MAPS}/a?${query}`, {
      body,
      headers: { "content-type": "application/apply-patch+yaml" },
      ...(user === undefined ? {} : { user }),
    });
}

const settings = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } };

t.test("an apply creates and updates, with JSON and YAML", async (t) => {
  await using server = await startTestServer();
  const apply = applier(server);
  const created = await apply("fieldManager=m", { ...settings, data: { k: "1" } });
  t.match(created, { status: 201, json: { data: { k: "1" }, metadata: { managedFields: [{ manager: "m" }] } } });
  const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: |\n    two\n---\nnot: looked at\n";
  t.match(await apply("fieldManager=m", text), { status: 200, json: { data: { k: "two\n" } } });
  const refused = await apply("fieldManager=n", { ...settings, data: { k: "3" } });
  t.match(refused.json, { code: 409, details: { causes: [{ reason: "FieldManagerConflict", field: ".data.k" }] } });
  t.equal((await apply("fieldManager=n&force=true", { ...settings, data: { k: "3" } })).json.data.k, "3");
});

const refusals = [
  ["", settings, 422, /fieldManager: Required value: is required for apply patch/],
  [`fieldManager=${"x".repeat(129)}`, settings, 422, /fieldManager: Too long/],
  ["fieldManager=m&dryRun=Some", settings, 422, /dryRun: Unsupported value/],
  ["fieldManager=m", "a: b: c", 400, /^error decoding YAML: /],
  ["fieldManager=m", "- a", 400, /cannot unmarshal array into Go value of type map/],
  ["fieldManager=m", "", 400, /^invalid object type: \/, Kind=$/],
  ["fieldManager=m", '{"a": ', 400, /^error decoding YAML: /],
  [
    "fieldManager=m&fieldValidation=Strict",
    `${JSON.stringify(settings).slice(0, -1)},"data":{"k":"1","k":"2"}}`,
    400,
    /key "k" already set in map/,
  ],
] as const;

for (const [query, body, code, message] of refusals) {
  t.test(`an apply with ${query.slice(0, 40)} of ${JSON.stringify(body).slice(0, 40)} is rejected`, async (t) => {
    await using server = await startTestServer();
    t.match((await applier(server)(query, body)).json, { code, message });
  });
}

t.test("an apply warns about duplicate keys, with their line", async (t) => {
  await using server = await startTestServer();
  const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: one\n  k: two\n";
  const warned = await applier(server)("fieldManager=m", text);
  t.match(warned.headers.warning, /line 6: key \\"k\\" already set in map/);
  t.equal((await applier(server)("fieldManager=m&fieldValidation=Ignore", text)).headers.warning, undefined);
});

t.test("a user with patch but without create cannot create by an apply", async (t) => {
  await using server = await startTestServer({ authorizationModes: ["RBAC"] });
  const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "patch"] }];
  const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
  await server.send(`POST ${rbac}/roles`, { body: { metadata: { name: "patcher" }, rules } });
  await server.send(`POST ${rbac}/rolebindings`, {
    body: {
      metadata: { name: "patcher" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "patcher" },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "alice" }],
    },
  });
  const apply = applier(server, "alice");
  t.match((await apply("fieldManager=m", settings)).json, {
    code: 403,
    message: /User "alice" cannot create resource "configmaps" in API group "" in the namespace "default"/,
  });
  await server.send(`POST ${MAPS}`, { body: settings });
  t.equal((await apply("fieldManager=m", { ...settings, data: { k: "1" } })).status, 200);
});

t.test("field managers are those of the query, or the client's program", async (t) => {
  await using server = await startTestServer();
  const managerOf = async (name: string, agent: string, query = "") => {
    const headers = agent === "" ? {} : { "user-agent": agent };
    const created = await server.send(`POST ${MAPS}${query}`, {
      body: { metadata: { name }, data: { k: "1" } },
      headers,
    });
    return created.json.metadata.managedFields[0].manager;
  };
  t.equal(await managerOf("a", "kubectl/v1.33.1 (linux/amd64)"), "kubectl");
  t.equal(await managerOf("b", "kubectl/v1.33.1", "?fieldManager=me"), "me");
  t.equal(await managerOf("c", "my\u0007 agent"), "my agent");
  t.equal(await managerOf("d", "x".repeat(200)), "x".repeat(128));
  t.equal(await managerOf("e", ""), "unknown");
});
