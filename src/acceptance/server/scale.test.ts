import t from "tap";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";

const WEB = "/apis/apps/v1/namespaces/default/deployments/web";
const APPLY = "application/apply-patch+yaml";
const MERGE = "application/merge-patch+json";

const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", labels: { team: "a" } },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: "web" }, matchExpressions: [{ key: "old", operator: "DoesNotExist" }] },
    template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image: "web:1" }] } },
  },
};

const scale = (replicas: number, metadata: object = {}) => ({
  apiVersion: "autoscaling/v1",
  kind: "Scale",
  metadata: { name: "web", ...metadata },
  spec: { replicas },
});

async function withWeb(): Promise<TestServer> {
  const server = await startTestServer();
  await send(server, "POST", "/apis/apps/v1/namespaces/default/deployments?fieldManager=author", deployment);
  return server;
}

async function send(server: TestServer, method: string, path: string, body: unknown, type = "application/json") {
  const headers = { "content-type": type, "user-agent": "tester" };
  return await server.send(`${method} ${path}`, { body: Buffer.from(JSON.stringify(body)), headers });
}

t.test("scale has the desired and current replicas and the selector of a controller", async (t) => {
  await using server = await withWeb();
  const { status, json } = await server.send(`GET ${WEB}/scale`);
  t.equal(status, 200);
  t.match(json, {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name: "web", namespace: "default" },
    spec: { replicas: 2 },
    status: { replicas: 0, selector: "app=web,!old" },
  });
  t.notOk("labels" in (json as { readonly metadata: object }).metadata, "a scale has no labels");
  t.equal((await server.send("GET /apis/apps/v1/namespaces/default/deployments/none/scale")).status, 404);
});

t.test("an update of scale changes only the replicas of the controller", async (t) => {
  await using server = await withWeb();
  const steps = [
    ["PUT", scale(3, { labels: { team: "b" } }), "application/json", 3],
    ["PATCH", { spec: { replicas: 4 } }, MERGE, 4],
    ["PATCH", { spec: { replicas: 5 } }, "application/strategic-merge-patch+json", 5],
    ["PATCH", [{ op: "replace", path: "/spec/replicas", value: 6 }], "application/json-patch+json", 6],
  ] as const;
  for (const [method, body, type, replicas] of steps) {
    const response = await send(server, method, `${WEB}/scale`, body, type);
    t.match(response.json, { kind: "Scale", spec: { replicas } }, type);
  }
  const { json } = await server.send(`GET ${WEB}`);
  t.match(json, { metadata: { generation: 5, labels: { team: "a" } }, spec: { replicas: 6 } });
});

t.test("an invalid or conflicting update of scale is rejected", async (t) => {
  await using server = await withWeb();
  const cases = [
    [scale(-1), 422, 'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1'],
    [scale(1, { name: "other" }), 400, "the name of the object (other) does not match the name on the URL (web)"],
    [scale(1, { namespace: "other" }), 400, "the namespace of the provided object does not match"],
    [scale(1, { resourceVersion: "1" }), 409, "the object has been modified"],
    [scale(1, { uid: "other" }), 409, "UID in precondition: other"],
    [deployment, 400, "Deployment in version"],
  ] as const;
  for (const [body, status, message] of cases) {
    const response = await send(server, "PUT", `${WEB}/scale`, body);
    t.equal(response.status, status, message);
    t.ok(response.text.includes(JSON.stringify(message).slice(1, -1)), response.text);
  }
});

t.test("an apply of scale makes its manager the owner of the replicas", async (t) => {
  await using server = await withWeb();
  const apply = (body: unknown, query: string) => send(server, "PATCH", `${WEB}/scale?${query}`, body, APPLY);
  const refused = await apply(scale(7), "fieldManager=scaler");
  t.match(refused.json, { code: 409, details: { causes: [{ field: ".spec.replicas" }] } });
  t.match((await apply(scale(7), "fieldManager=scaler&force=true")).json, { kind: "Scale", spec: { replicas: 7 } });
  const managed = (await server.send(`GET ${WEB}`)).json.metadata.managedFields;
  const scaler = { manager: "scaler", operation: "Apply", subresource: "scale", apiVersion: "apps/v1" };
  t.match(managed, [{ ...scaler, fieldsV1: { "f:spec": { "f:replicas": {} } } }, { manager: "author" }]);
  const more = { ...scale(7), spec: { replicas: 7, paused: true } };
  t.match((await apply(more, "fieldManager=scaler")).text, /\.spec\.paused: field not declared in schema/);
  t.equal((await apply(scale(-1), "fieldManager=scaler")).status, 422);
});
