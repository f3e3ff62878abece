/** Which connections of a whole server run through which proxy. */
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { caBundle, startTestWebhook } from "../../testing/admission/webhook-fixture.ts";
import { ConnectProxy, KonnectivityServer } from "../../testing/apiserver/egress-proxies.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { until } from "../../testing/std/until.ts";

function temporaryFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-egress-"));
  t.teardown(() => rmSync(folder, { recursive: true }));
  return folder;
}

function writeSelections(folder: string, connections: Readonly<Record<string, object>>): string {
  const path = join(folder, "egress.json");
  const egressSelections = Object.entries(connections).map(([name, connection]) => ({ name, connection }));
  const config = { apiVersion: "apiserver.k8s.io/v1beta1", kind: "EgressSelectorConfiguration", egressSelections };
  writeFileSync(path, JSON.stringify(config));
  return path;
}

const connectTo = (proxy: ConnectProxy): object => ({
  proxyProtocol: "HTTPConnect",
  transport: { tcp: { url: proxy.url } },
});

const allow = ({ review }: { readonly review: { readonly request: { readonly uid: string } } }): object => ({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  response: { uid: review.request.uid, allowed: true },
});

const CONFIGMAPS = "/api/v1/namespaces/default/configmaps";

t.test("webhooks of services use the cluster's proxy, those of URLs the control plane's", async (t) => {
  await using hook = await startTestWebhook(allow, ["hook.default.svc"]);
  const resolve = (): string => `127.0.0.1:${hook.port}`;
  await using cluster = await ConnectProxy.start({ resolve });
  await using control = await ConnectProxy.start({ resolve });
  const file = writeSelections(temporaryFolder(t), { cluster: connectTo(cluster), master: connectTo(control) });
  await using server = await startTestServer({ egressSelectorFile: file });
  const service = { metadata: { name: "hook" }, spec: { clusterIP: "10.0.0.77", ports: [{ port: 443 }] } };
  t.equal((await server.send("POST /api/v1/namespaces/default/services", { body: service })).status, 201);
  const configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  const rules = [{ apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["CREATE"] }];
  const common = { rules, sideEffects: "None", admissionReviewVersions: ["v1"], failurePolicy: "Fail" };
  const webhooks = [
    { ...common, name: "a.example.com", clientConfig: { service: { namespace: "default", name: "hook" }, caBundle } },
    { ...common, name: "b.example.com", clientConfig: { url: "https://127.0.0.1:8443/hook", caBundle } },
  ];
  const created = await server.send(`POST ${configurations}`, { body: { metadata: { name: "h" }, webhooks } });
  t.equal(created.status, 201);
  for (let attempt = 0; attempt < 50 && hook.received.length < 2; attempt++) {
    await server.clock.advance(100);
    const body = { metadata: { generateName: "c-" } };
    t.equal((await server.send(`POST ${CONFIGMAPS}`, { body })).status, 201);
  }
  t.same([...new Set(cluster.targets)], ["10.0.0.77:443"]);
  t.same([...new Set(control.targets)], ["127.0.0.1:8443"]);
  const { text } = await server.send("GET /metrics");
  t.match(text, /apiserver_egress_dialer_dial_start_total\{protocol="http_connect",transport="tcp"\} 2/);
});

t.test("agents of nodes are reached through konnectivity, with TLS end to end", async (t) => {
  const { server: pair } = await makeServerCertificate();
  const agent = createHttpsServer({ cert: pair.cert, key: pair.key }, (request, response) => {
    response.end(`agent: ${request.url}`);
  });
  agent.listen(0, "127.0.0.1");
  await once(agent, "listening");
  t.teardown(() => {
    agent.closeAllConnections();
    agent.close();
  });
  const { port } = agent.address() as AddressInfo;
  const folder = temporaryFolder(t);
  const path = join(folder, "k.sock");
  await using proxy = await KonnectivityServer.start({ path, resolve: () => `127.0.0.1:${port}` });
  const cluster = { proxyProtocol: "GRPC", transport: { uds: { udsName: path } } };
  await using server = await startTestServer({ egressSelectorFile: writeSelections(folder, { cluster }) });
  const addresses = [{ type: "InternalIP", address: "10.1.2.3" }];
  const daemonEndpoints = { kubeletEndpoint: { Port: 10250 } };
  await server.send("POST /api/v1/nodes", { body: { metadata: { name: "n" } } });
  const { json } = await server.send("GET /api/v1/nodes/n");
  await server.send("PUT /api/v1/nodes/n/status", { body: { ...json, status: { addresses, daemonEndpoints } } });
  const { status, text } = await server.send("GET /api/v1/nodes/n/proxy/healthz");
  t.same([status, text], [200, "agent: /healthz"]);
  t.same(proxy.targets, ["10.1.2.3:10250"]);
});

t.test("extension servers are reached through the cluster's proxy", async (t) => {
  const { server: pair } = await makeServerCertificate();
  const extension = createHttpsServer({ cert: pair.cert, key: pair.key }, (request, response) => {
    response.setHeader("content-type", "application/json").end(JSON.stringify({ path: request.url }));
  });
  extension.listen(0, "127.0.0.1");
  await once(extension, "listening");
  t.teardown(() => {
    extension.closeAllConnections();
    extension.close();
  });
  const { port } = extension.address() as AddressInfo;
  await using proxy = await ConnectProxy.start({ resolve: () => `127.0.0.1:${port}` });
  const file = writeSelections(temporaryFolder(t), { cluster: connectTo(proxy) });
  await using server = await startTestServer({ egressSelectorFile: file });
  const service = { metadata: { name: "ext" }, spec: { type: "ExternalName", externalName: "ext.example.com" } };
  await server.send("POST /api/v1/namespaces/default/services", { body: service });
  const spec = {
    ...{ group: "ext.example.com", version: "v1", groupPriorityMinimum: 100, versionPriority: 10 },
    service: { namespace: "default", name: "ext" },
    insecureSkipTLSVerify: true,
  };
  const body = { metadata: { name: "v1.ext.example.com" }, spec };
  t.equal((await server.send("POST /apis/apiregistration.k8s.io/v1/apiservices", { body })).status, 201);
  const path = "/apis/ext.example.com/v1/widgets";
  const response = await until("the extension server is available", async () => {
    await server.clock.advance(1_000);
    const answer = await server.send(`GET ${path}`);
    return answer.status === 200 && answer;
  });
  t.same(response.json, { path });
  t.same([...new Set(proxy.targets)], ["ext.example.com:443"]);
});

t.test("an unusable file stops the start with the flag's error", async (t) => {
  await t.rejects(startTestServer({ egressSelectorFile: "/none" }), {
    message: /^failed to read egress selector config: /,
  });
});
