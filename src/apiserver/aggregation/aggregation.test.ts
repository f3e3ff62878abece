import { networkInterfaces } from "node:os";
import t from "tap";
import { textResponse } from "../../http/respond.ts";
import {
  API_SERVICES,
  SAMPLE_API,
  SAMPLE_GROUP,
  startAggregatedCluster,
} from "../../testing/aggregation/aggregated-cluster.ts";
import { readLines } from "../../testing/apiserver/server-fixture.ts";
import { until } from "../../testing/std/until.ts";

const GROUP_VERSION = `/apis/${SAMPLE_GROUP}/v1alpha1`;
const FLUNDERS = `${GROUP_VERSION}/namespaces/default/flunders`;
const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

t.test("verbs on objects of an extension server", async (t) => {
  await using cluster = await startAggregatedCluster();
  const { server, extension } = cluster;
  t.equal((await server.send(`GET ${FLUNDERS}`)).status, 404, "before the API service exists");
  await cluster.register();
  t.match(await cluster.waitForAvailability("True"), { reason: "Passed", message: "all checks passed" });
  const created = await server.send(`POST ${FLUNDERS}`, {
    body: { metadata: { name: "a" }, spec: { reference: "x" } },
  });
  t.match(created, { status: 201, json: { kind: "Flunder", metadata: { name: "a", namespace: "default" } } });
  const { resourceVersion } = created.json.metadata;
  const end = new AbortController();
  const watch = await server.open(`GET ${FLUNDERS}?watch=true&resourceVersion=${resourceVersion}`, {
    signal: end.signal,
  });
  const patched = await server.send(`PATCH ${FLUNDERS}/a`, {
    body: { spec: { reference: "y" } },
    headers: { "content-type": "application/merge-patch+json" },
  });
  t.match(patched.json, { spec: { reference: "y" } });
  t.match(await readLines(watch, 1), [{ type: "MODIFIED", object: { spec: { reference: "y" } } }]);
  end.abort();
  t.match((await server.send(`GET ${FLUNDERS}?limit=1&labelSelector=a%21%3Db`)).json, {
    kind: "FlunderList",
    items: [{ metadata: { name: "a" } }],
  });
  t.match((await server.send(`DELETE ${FLUNDERS}/a`)).json, { status: "Success" });
  t.match((await server.send(`GET ${FLUNDERS}/a`)).json, { code: 404, message: /flunders.*"a" not found/ });
  const { user } = extension.received.findLast(({ line }) => line.startsWith("POST"))!;
  t.match(user, { name: "admin", uid: "1", groups: ["system:masters", "system:authenticated"] });
});

t.test("discovery of an extension server is part of that of the API server", async (t) => {
  await using cluster = await startAggregatedCluster();
  const { server } = cluster;
  await cluster.register({ groupPriorityMinimum: 17_900 });
  await cluster.waitForAvailability("True");
  const headers = { accept: AGGREGATED };
  const find = async () => {
    const { items } = (await server.send("GET /apis", { headers })).json;
    // biome-ignore lint/suspicious/noExplicitAny: a document of the server
    return items.find(({ metadata }: any) => metadata.name === SAMPLE_GROUP)?.versions[0];
  };
  const version = await until("resources", async () => ((await find())?.resources?.length ? find() : undefined), {
    wait: cluster.wait,
  });
  t.match(version, { version: "v1alpha1", freshness: "Current" });
  t.match(
    version.resources.find(({ resource }: { resource: string }) => resource === "flunders"),
    { scope: "Namespaced", responseKind: { kind: "Flunder" }, singularResource: "flunder", shortNames: ["fl"] },
  );
  const groups = (await server.send("GET /apis")).json.groups.map(({ name }: { name: string }) => name);
  t.equal(groups[groups.indexOf(SAMPLE_GROUP) + 1], "apps", "before groups of a lower priority");
  t.match((await server.send(`GET ${GROUP_VERSION}`)).json, { kind: "APIResourceList", groupVersion: /^wardle/ });
  await server.send(`DELETE ${API_SERVICES}/${SAMPLE_API}`);
  await until("no group", async () => (await server.send(`GET /apis/${SAMPLE_GROUP}`)).status === 404, {
    wait: cluster.wait,
  });
  t.equal((await server.send(`GET ${FLUNDERS}`)).status, 404);
  t.equal(await find(), undefined);
});

t.test("an extension server of the API service v1. gets all requests below /api", async (t) => {
  await using cluster = await startAggregatedCluster({
    extension: {
      intercept: async ({ request }) => (request.path.startsWith("/api") ? textResponse(200, "other") : undefined),
    },
  });
  const { server, extension } = cluster;
  const groups = (await server.send("GET /apis")).json.groups.length;
  const path = `${API_SERVICES}/v1.`;
  const local = await server.send(`GET ${path}`);
  if (local.status === 200) await server.send(`DELETE ${path}`);
  await cluster.register({}, "v1.");
  await cluster.waitForAvailability("True", "v1.");
  for (const path of ["/api", "/api/v1", "/api/v1/namespaces/default/pods"]) {
    t.equal((await server.send(`GET ${path}`)).text, "other", path);
    t.ok(extension.received.some(({ line }) => line === `GET ${path}`));
  }
  const { json } = await server.send("GET /apis");
  t.equal(json.groups.length, groups, "no group without a name");
  t.equal((await server.send("GET /apis/apps/v1/deployments")).status, 200);
  await server.send(`DELETE ${path}`);
  await until("the server serves it again", async () => (await server.send("GET /api/v1/pods")).text !== "other", {
    wait: cluster.wait,
  });
});

t.test("OpenAPI documents of an extension server are merged", async (t) => {
  await using cluster = await startAggregatedCluster();
  const { server, extension } = cluster;
  const before = (await server.send("GET /openapi/v2")).headers.etag;
  await cluster.register();
  await cluster.waitForAvailability("True");
  const v2 = await server.send("GET /openapi/v2");
  t.not(v2.headers.etag, before);
  const { paths, definitions } = v2.json;
  const list = paths[`${GROUP_VERSION}/namespaces/{namespace}/flunders`].get;
  const name = list.responses["200"].schema.$ref.replace("#/definitions/", "");
  t.ok(definitions[name].properties.items.items.$ref in renamedKeys(definitions), name);
  t.ok(paths["/api/v1/pods"], "its own paths stay");
  t.equal((await server.send("GET /openapi/v2")).headers.etag, v2.headers.etag);
  const unchanged = await server.send("GET /openapi/v2", { headers: { "if-none-match": String(v2.headers.etag) } });
  t.equal(unchanged.status, 304);
  const requests = extension.received.filter(({ line }) => line === "GET /openapi/v2");
  t.same([requests.length, requests[0]?.user.name], [1, "system:aggregator"], "one request a minute");
  const { serverRelativeURL } = (await server.send("GET /openapi/v3")).json.paths[GROUP_VERSION.slice(1)];
  const v3 = await server.send(`GET ${serverRelativeURL}`);
  t.match(v3, { status: 200, headers: { "cache-control": "public, immutable" } });
  t.ok(v3.json.paths[`${GROUP_VERSION}/namespaces/{namespace}/flunders`]);
  t.notOk((await server.send("GET /openapi/v3")).json.paths["api/v1"].serverRelativeURL.includes("wardle"));
});

const renamedKeys = (definitions: object): object =>
  Object.fromEntries(Object.keys(definitions).map((name) => [`#/definitions/${name}`, true]));

t.test("a server with OpenAPI v2 only has a converted v3 document", async (t) => {
  const document = {
    swagger: "2.0",
    paths: {
      [`${GROUP_VERSION}/things/`]: {
        post: {
          consumes: ["application/json"],
          produces: ["application/json"],
          parameters: [
            { name: "body", in: "body", required: true, schema: { $ref: "#/definitions/Thing" } },
            { name: "dryRun", in: "query", type: "string", uniqueItems: true },
          ],
          responses: { "200": { description: "OK", schema: { $ref: "#/definitions/Thing" } } },
        },
      },
      "/api/v1/pods": { get: { description: "not its own" } },
    },
    definitions: { Thing: { type: "object" }, Unused: { type: "string" } },
  };
  await using cluster = await startAggregatedCluster({
    extension: {
      intercept: async ({ request: { path } }) => {
        if (path.startsWith("/openapi/v3")) return textResponse(404, "not found");
        return path === "/openapi/v2" ? textResponse(200, JSON.stringify(document)) : undefined;
      },
    },
  });
  const { server } = cluster;
  await cluster.register();
  await cluster.waitForAvailability("True");
  const { serverRelativeURL } = (await server.send("GET /openapi/v3")).json.paths[GROUP_VERSION.slice(1)];
  const schema = { $ref: "#/components/schemas/Thing" };
  t.same((await server.send(`GET ${serverRelativeURL}`)).json, {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: "unversioned" },
    paths: {
      [`${GROUP_VERSION}/things/`]: {
        post: {
          parameters: [{ name: "dryRun", in: "query", schema: { type: "string", uniqueItems: true } }],
          requestBody: { content: { "application/json": { schema } }, required: true },
          responses: { "200": { description: "OK", content: { "application/json": { schema } } } },
        },
      },
    },
    components: { schemas: { Thing: { type: "object" } } },
  });
  const v2 = (await server.send("GET /openapi/v2")).json;
  t.not(v2.paths["/api/v1/pods"].get.description, "not its own", "only paths of the group version are taken");
});

t.test("availability follows services, endpoints and the server", async (t) => {
  await using cluster = await startAggregatedCluster();
  const { server, extension } = cluster;
  const SERVICES = "/api/v1/namespaces/default/services";
  const ENDPOINTS = "/api/v1/namespaces/default/endpoints";
  await cluster.register({ service: { namespace: "default", name: "own", port: 443 } });
  const reason = async (wanted: string) =>
    await until(
      wanted,
      async () => {
        const [found] = (await server.send(`GET ${API_SERVICES}/${SAMPLE_API}`)).json.status?.conditions ?? [];
        return found?.reason === wanted ? found.message : undefined;
      },
      { wait: cluster.wait, timeoutMs: 10_000 },
    );
  t.equal(await reason("ServiceNotFound"), 'service/own in "default" is not present');
  await server.send(`POST ${SERVICES}`, {
    body: { metadata: { name: "own" }, spec: { ports: [{ name: "a", port: 80 }] } },
  });
  t.equal(await reason("ServicePortError"), 'service/own in "default" is not listening on port 443');
  const headers = { "content-type": "application/merge-patch+json" };
  const ports = [{ name: "a", port: 443, targetPort: extension.port }];
  await server.send(`PATCH ${SERVICES}/own`, { body: { spec: { ports } }, headers });
  t.equal(await reason("EndpointsNotFound"), 'cannot find endpoints for service/own in "default"');
  await server.send(`POST ${ENDPOINTS}`, { body: { metadata: { name: "own" }, subsets: [] } });
  t.match(
    await reason("MissingEndpoints"),
    'endpoints for service/own in "default" have no addresses with port name "a"',
  );
  const metrics = (await server.send("GET /metrics")).text;
  t.match(metrics, `aggregator_unavailable_apiservice{name="${SAMPLE_API}"} 1`);
  t.match(metrics, `aggregator_unavailable_apiservice_total{name="${SAMPLE_API}",reason="ServiceNotFound"} 1`);
  await server.send(`DELETE ${API_SERVICES}/${SAMPLE_API}`);
  await until("no series", async () => !(await server.send("GET /metrics")).text.includes(`name="${SAMPLE_API}"} 1\n`));
});

t.test("with --enable-aggregator-routing requests go to endpoints", async (t) => {
  const host = Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === "IPv4" && !each.internal)?.address;
  if (host === undefined) return t.comment("Skipped: this machine has no address but its loopback");
  const { defaultConfig } = await import("../config/default-config.ts");
  const admission = { ...defaultConfig.admission, serviceEndpoints: true };
  await using cluster = await startAggregatedCluster({ config: { admission }, extension: { host } });
  const { server, extension } = cluster;
  const ports = [{ name: "a", port: 443, targetPort: extension.port }];
  await server.send("POST /api/v1/namespaces/default/services", {
    body: { metadata: { name: "own" }, spec: { ports } },
  });
  await server.send("POST /api/v1/namespaces/default/endpoints", {
    body: {
      metadata: { name: "own" },
      subsets: [{ addresses: [{ ip: host }], ports: [{ name: "a", port: extension.port }] }],
    },
  });
  const service = { namespace: "default", name: "own", port: 443 };
  await cluster.register({ service, insecureSkipTLSVerify: true });
  await cluster.waitForAvailability("True");
  t.equal((await server.send(`GET ${FLUNDERS}`)).status, 200);
  t.equal(extension.received.at(-1)?.headers["x-forwarded-host"], `${host}:${extension.port}`);
});

t.test("an API service that loses its extension server is local", async (t) => {
  await using cluster = await startAggregatedCluster();
  const { server } = cluster;
  await cluster.register();
  await cluster.waitForAvailability("True");
  const body = { spec: { service: null, caBundle: null } };
  const headers = { "content-type": "application/merge-patch+json" };
  t.equal((await server.send(`PATCH ${API_SERVICES}/${SAMPLE_API}`, { body, headers })).status, 200);
  const isLocal = async () => (await cluster.waitForAvailability("True")).reason === "Local";
  await until("a local API service", isLocal, { wait: cluster.wait });
  t.equal((await server.send(`GET ${FLUNDERS}`)).status, 404);
  t.equal((await server.send(`GET /apis/${SAMPLE_GROUP}`)).status, 200, "the group is listed");
  const { items } = (await server.send("GET /apis", { headers: { accept: AGGREGATED } })).json;
  t.notOk(items.some(({ metadata }: { metadata: { name: string } }) => metadata.name === SAMPLE_GROUP));
});
