import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import t, { type Test } from "tap";
import { podMetrics } from "../../api/metrics/schema.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { decodeEnvelope } from "../../schema/protobuf/envelope.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { until } from "../../testing/std/until.ts";
import { defaultConfig } from "../config/default-config.ts";

const API = "/apis/metrics.k8s.io/v1beta1";
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const { server: certificate } = await makeServerCertificate();

/** An agent whose node uses 250m and 4 GiB, and each container 100m and 11 MiB. */
async function startAgent(t: Test, containers: readonly string[], seconds: () => number): Promise<() => number> {
  let port = 0;
  const agent = createServer({ cert: certificate.cert, key: certificate.key }, (request, response) => {
    if (request.url !== "/metrics/resource") return void response.writeHead(404).end();
    const now = seconds();
    const stamp = Math.round((1_700_000_000 + now) * 1000);
    const lines = containers.flatMap((labels) => [
      `container_cpu_usage_seconds_total{${labels}} ${1 + now / 10} ${stamp}`,
      `container_memory_working_set_bytes{${labels}} ${11 * 2 ** 20} ${stamp}`,
      `container_start_time_seconds{${labels}} 1.6e9`,
    ]);
    lines.push(`node_cpu_usage_seconds_total ${100 + now / 4} ${stamp}`);
    lines.push(`node_memory_working_set_bytes ${2 ** 32} ${stamp}`);
    response.end(`${lines.join("\n")}\n`);
  });
  await once(agent.listen(0, "127.0.0.1"), "listening");
  port = (agent.address() as AddressInfo).port;
  t.teardown(() => agent.close());
  return () => port;
}

const label = (pod: string, container: string): string => `container="${container}",namespace="default",pod="${pod}"`;

async function startServer(t: Test, config: Parameters<typeof startTestServer>[0] = {}): Promise<TestServer> {
  const server = await startTestServer({
    ...config,
    agents: { ...defaultConfig.agents, preferredAddressTypes: ["InternalIP"] },
  });
  const containers = [label("web", "one"), label("web", "two"), label("api", "one"), label("elsewhere", "one")];
  const port = await startAgent(t, containers, () => server.clock.monotonic() / 1000);
  await createNode(server, "n1", { type: "InternalIP", address: "127.0.0.1" }, port());
  await createNode(server, "n2", { type: "Hostname", address: "n2" }, port());
  const pods = [
    ["web", "n1", "Running"],
    ["api", "n1", "Running"],
    ["done", "n1", "Succeeded"],
    ["fresh", "n1", "Running"],
    ["elsewhere", "n2", "Running"],
  ] as const;
  for (const [name, nodeName, phase] of pods) {
    const path = "/api/v1/namespaces/default/pods";
    const spec = { nodeName, containers: [{ name: "one", image: "x" }] };
    const created = await server.send(`POST ${path}`, { body: { metadata: { name, labels: { app: name } }, spec } });
    t.equal(created.status, 201, created.text);
    const written = await server.send(`PUT ${path}/${name}/status`, { body: { ...created.json, status: { phase } } });
    t.equal(written.status, 200, written.text);
  }
  return server;
}

async function createNode(server: TestServer, name: string, address: object, port: number): Promise<void> {
  const status = { addresses: [address], daemonEndpoints: { kubeletEndpoint: { Port: port } } };
  const created = await server.send("POST /api/v1/nodes", { body: { metadata: { name, labels: { zone: name } } } });
  await server.send(`PUT /api/v1/nodes/${name}/status`, { body: { ...created.json, status } });
}

/** Sends a request while time passes, which the first request needs. */
async function send(server: TestServer, line: string, options: Parameters<TestServer["send"]>[1] = {}) {
  let isDone = false;
  const response = server.send(line, options).finally(() => {
    isDone = true;
  });
  while (!isDone) {
    await server.clock.advance(50);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return await response;
}

const namesOf = ({ json }: { readonly json: { readonly items: readonly { metadata: { name: string } }[] } }) =>
  json.items.map(({ metadata }) => metadata.name);

t.test("metrics of nodes and pods are served as by metrics-server", async (t) => {
  await using server = await startServer(t);
  const nodes = await send(server, `GET ${API}/nodes`);
  t.match(nodes.json, {
    kind: "NodeMetricsList",
    apiVersion: "metrics.k8s.io/v1beta1",
    items: [{ metadata: { name: "n1", labels: { zone: "n1" } }, usage: { memory: "4Gi" } }],
  });
  const [node] = nodes.json.items;
  t.match(node.timestamp, /^2023-11-14T22:13:2\dZ$/);
  t.match(node.window, /^[123](\.\d+)?s$/);
  t.match(node.usage.cpu, /^2(49\d*|50)(m|u|n)$/);
  const web = (await send(server, `GET ${API}/namespaces/default/pods/web`)).json;
  t.match(web, {
    kind: "PodMetrics",
    apiVersion: "metrics.k8s.io/v1beta1",
    metadata: { name: "web", namespace: "default", labels: { app: "web" }, creationTimestamp: String },
    containers: [
      { name: "one", usage: { memory: "11Mi" } },
      { name: "two", usage: { memory: "11Mi" } },
    ],
  });
  t.match((await send(server, "GET /apis/metrics.svc.io/v1beta1/nodes/n1")).json.apiVersion, "metrics.svc.io/v1beta1");
});

t.test("selectors of labels and fields select metrics", async (t) => {
  await using server = await startServer(t);
  const pods = async (query: string, path = "/namespaces/default/pods") =>
    namesOf(await send(server, `GET ${API}${path}${query}`));
  t.same(await pods("", "/pods"), ["api", "web"], "running pods with metrics of their own node");
  t.same(await pods("?labelSelector=app%3Dweb"), ["web"]);
  t.same(await pods("?labelSelector=app%21%3Dweb"), ["api"]);
  t.same(await pods("?fieldSelector=metadata.name%3Dapi"), ["api"]);
  t.same(await pods("?fieldSelector=metadata.namespace%21%3Ddefault", "/pods"), []);
  t.same(await pods("", "/namespaces/other/pods"), []);
  t.same(await pods("?labelSelector=zone+in+(n1,n2)", "/nodes"), ["n1"]);
  t.same(await pods("?fieldSelector=metadata.name%3Dn2", "/nodes"), []);
  t.match(await send(server, `GET ${API}/pods?fieldSelector=spec.nodeName%3Dn1`), {
    status: 400,
    json: { message: /"spec\.nodeName" is not a known field selector: only "metadata\.name", "metadata\.namespace"/ },
  });
});

t.test("objects without metrics get metrics-server's 404, and writes and watches 405", async (t) => {
  await using server = await startServer(t);
  const cases = [
    ["/namespaces/default/pods/none", 'pods "none" not found'],
    ["/namespaces/default/pods/done", 'pods "done" not found'],
    ["/namespaces/default/pods/fresh", 'podmetrics.metrics.k8s.io "default/fresh" not found'],
    ["/namespaces/default/pods/elsewhere", 'podmetrics.metrics.k8s.io "default/elsewhere" not found'],
    ["/nodes/none", 'nodes "none" not found'],
    ["/nodes/n2", 'nodemetrics.metrics.k8s.io "n2" not found'],
  ] as const;
  for (const [path, message] of cases) {
    t.match(await send(server, `GET ${API}${path}`), { status: 404, json: { message } }, path);
  }
  t.equal((await send(server, `POST ${API}/nodes`, { body: {} })).status, 405);
  t.match(await send(server, `GET ${API}/pods?watch=true`), {
    status: 405,
    json: { message: 'watch is not supported on resources of kind "pods.metrics.k8s.io"' },
  });
});

t.test("metrics are served as tables and in protobuf", async (t) => {
  await using server = await startServer(t);
  const headers = { accept: TABLE };
  const table = (await send(server, `GET ${API}/namespaces/default/pods/web`, { headers })).json;
  t.match(
    table.columnDefinitions.map(({ name }: { name: string }) => name),
    ["Name", "cpu", "memory", "Window"],
  );
  t.match(table.rows[0].cells, ["web", String, "22Mi", /s$/]);
  const mediaType = "application/vnd.kubernetes.protobuf";
  const { bytes } = await send(server, `GET ${API}/namespaces/default/pods/web`, { headers: { accept: mediaType } });
  const { apiVersion, kind, raw } = decodeEnvelope(bytes);
  t.match({ apiVersion, kind }, { apiVersion: "metrics.k8s.io/v1beta1", kind: "PodMetrics" });
  t.match(decodeProtobuf(podMetrics, raw), {
    containers: [{ name: "one", usage: { memory: "11Mi" } }, { name: "two" }],
  });
  const list = await send(server, `GET ${API}/nodes`, { headers: { accept: mediaType } });
  t.match(decodeEnvelope(list.bytes), { kind: "NodeMetricsList" });
});

t.test("reading metrics is authorized as reading any resource", async (t) => {
  await using server = await startServer(t, {
    authorizationModes: ["RBAC"],
    embeddedControllers: ["clusterrole-aggregation"],
  });
  const asUser = { user: "jane" };
  t.match(await send(server, `GET ${API}/nodes`, asUser), {
    status: 403,
    json: { message: /User "jane" cannot list resource "nodes" in API group "metrics.k8s.io" at the cluster scope/ },
  });
  const binding = {
    metadata: { name: "jane" },
    subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "jane" }],
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
  };
  const path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
  t.equal((await server.send(`POST ${path}`, { body: binding })).status, 201);
  let status = 403;
  for (let tries = 0; status !== 200 && tries < 100; tries++) {
    status = (await send(server, `GET ${API}/nodes`, asUser)).status;
  }
  t.equal(status, 200, "the role view has the rules of system:aggregated-metrics-reader");
  t.equal((await send(server, "GET /apis/metrics.svc.io/v1beta1/namespaces/default/pods", asUser)).status, 200);
});

t.test("the group is in discovery once, with a local API service", async (t) => {
  await using server = await startTestServer();
  const groups = (await server.send("GET /apis")).json.groups as readonly { readonly name: string }[];
  const found = groups.map(({ name }) => name).filter((name) => name.startsWith("metrics."));
  t.same(found, ["metrics.k8s.io"]);
  const resource = { singularName: "", verbs: ["get", "list"] };
  t.same((await server.send(`GET ${API}`)).json.resources, [
    { name: "nodes", singularName: "", namespaced: false, kind: "NodeMetrics", verbs: resource.verbs },
    { name: "pods", singularName: "", namespaced: true, kind: "PodMetrics", verbs: resource.verbs },
  ]);
  const path = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io";
  const local = (await server.send(`GET ${path}`)).json;
  t.match(local, {
    spec: { groupPriorityMinimum: 100, versionPriority: 100 },
    status: { conditions: [{ type: "Available", status: "True", reason: "Local" }] },
  });
  const service = { name: "metrics-server", namespace: "kube-system" };
  const replaced = await server.send(`PUT ${path}`, {
    body: { ...local, spec: { ...local.spec, service, insecureSkipTLSVerify: true } },
  });
  t.equal(replaced.status, 200, replaced.text);
  const reasonOf = async () => {
    await server.clock.advance(100);
    return (await server.send(`GET ${path}`)).json.status.conditions[0].reason === "ServiceNotFound";
  };
  await until("a check of the service", reasonOf);
  t.equal((await server.send(`GET ${API}/nodes`)).status, 503, "requests go to that service");
  t.equal((await server.send("GET /apis/metrics.svc.io/v1beta1/nodes")).status, 200, "the server's own metrics stay");
});
