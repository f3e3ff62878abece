import { hostname } from "node:os";
import { join } from "node:path";
import t from "tap";
import { createCa } from "../../auth/pki/certificate-authority.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { keepOpen } from "../../testing/storage/keep-open.ts";
import type { ApiServerDeps } from "../assembly/server-base.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { defaultConfig } from "../config/default-config.ts";
import { serverIdentity } from "./identity-lease.ts";

const ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes";
const SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
const FLOW_CONTROL = "/apis/flowcontrol.apiserver.k8s.io/v1";
const BLOCKS = "/apis/networking.k8s.io/v1/servicecidrs";
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

const served = (
  advertiseAddress = "192.0.2.9",
  type: "lease" | "master-count" | "none" = "lease",
  config: Partial<ApiServerConfig> = {},
  more: Partial<ApiServerDeps> = {},
) => {
  const services = { ...defaultConfig.services, advertiseAddress, endpointReconciler: type };
  return startTestServer({ ...config, services }, more);
};
/** Without Kubernetes' names of API groups. */
const svcNames: Partial<ApiServerConfig> = { groupAliases: { served: false, listed: false } };

async function patch(server: TestServer, path: string, body: unknown): Promise<void> {
  const headers = { "content-type": "application/merge-patch+json" };
  const { status, text } = await server.send(`PATCH ${path}`, { body, headers });
  if (status !== 200) throw new Error(text);
}

t.test("startControlPlaneControllers() creates the initial objects, and recreates deleted ones", async (t) => {
  const ca = await createCa("clients", 1, Date.now());
  const authentication = { ...defaultConfig.authentication, clientCaFile: join(t.testdir({ ca: ca.cert }), "ca") };
  await using server = await served(undefined, undefined, { authentication });
  const lease = `${LEASES}/${serverIdentity(hostname())}`;
  const paths = [
    ENDPOINTS,
    SLICE,
    lease,
    `${BLOCKS}/kubernetes`,
    `${FLOW_CONTROL}/flowschemas/probes`,
    `${FLOW_CONTROL}/prioritylevelconfigurations/workload-low`,
    "/api/v1/namespaces/default/services/kubernetes",
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
    "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking",
    "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
  ];
  for (const path of paths) t.equal((await server.send(`GET ${path}`)).status, 200, path);
  for (const path of paths.filter((each) => !each.startsWith(BLOCKS) && !each.includes("priorityclasses"))) {
    t.equal((await server.send(`DELETE ${path}`)).status, 200, `DELETE ${path}`);
  }
  // Deletions trigger the reconcilers before their interval.
  await server.clock.advance(1000);
  for (const path of paths.filter((each) => each !== lease)) {
    t.equal((await server.send(`GET ${path}`)).status, 200, `${path} is back`);
  }
  await server.clock.advance(9500);
  t.equal((await server.send(`GET ${lease}`)).status, 200);
});

t.test("without authorities of clients there is no ConfigMap of them", async (t) => {
  await using server = await served();
  const path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
  t.equal((await server.send(`GET ${path}`)).status, 404);
});

t.test("default/svc has the endpoints of default/kubernetes where Kubernetes' names are off", async (t) => {
  await using server = await served(undefined, undefined, svcNames);
  const at = async (name: string) => (await server.send(`GET ${ENDPOINTS.replace("kubernetes", name)}`)).json;
  t.same((await at("svc")).subsets, (await at("kubernetes")).subsets);
  const service = async (name: string) =>
    (await server.send(`GET /api/v1/namespaces/default/services/${name}`)).json.spec;
  t.same((await service("svc")).ports, (await service("kubernetes")).ports);
  t.not((await service("svc")).clusterIP, (await service("kubernetes")).clusterIP);
  const theirs = { metadata: { labels: null }, spec: { ports: [{ port: 80, targetPort: 80 }] } };
  await patch(server, "/api/v1/namespaces/default/services/svc", theirs);
  const subsets = [{ addresses: [{ ip: "192.0.2.77" }], ports: [{ port: 80, protocol: "TCP" }] }];
  await patch(server, ENDPOINTS.replace("kubernetes", "svc"), { subsets });
  await server.clock.advance(10_500);
  t.same((await at("svc")).subsets, subsets);
  t.equal((await service("svc")).ports[0].port, 80);
});

t.test("startControlPlaneControllers() renews the identity lease and deletes expired ones", async (t) => {
  await using server = await served();
  const renewed = async () => (await server.send(`GET ${LEASES}/${serverIdentity(hostname())}`)).json.spec.renewTime;
  const before = await renewed();
  await server.clock.advance(10_500);
  t.not(await renewed(), before);
  const labels = { "apiserver.kubernetes.io/identity": "kube-apiserver" };
  const spec = { holderIdentity: "x", leaseDurationSeconds: 60, renewTime: "2025-01-01T00:00:00.000000Z" };
  for (const [name, meta] of [
    ["gone", { labels }],
    ["unlabelled", {}],
  ] as const) {
    await server.send(`POST ${LEASES}`, { body: { metadata: { name, ...meta }, spec } });
  }
  await server.clock.advance(3_600_000);
  t.equal((await server.send(`GET ${LEASES}/gone`)).status, 404);
  t.equal((await server.send(`GET ${LEASES}/unlabelled`)).status, 200);
});

t.test("EndpointReconciler publishes live servers, or added ones with type master-count", async (t) => {
  await using server = await served("192.0.2.9");
  const ips = async (from: TestServer) =>
    (await from.send(`GET ${ENDPOINTS}`)).json.subsets?.[0].addresses.map(({ ip }: { ip: string }) => ip);
  t.same(await ips(server), ["192.0.2.9"]);
  await patch(server, ENDPOINTS, { subsets: [{ addresses: [{ ip: "192.0.2.66" }], ports: [{ port: 1 }] }] });
  await server.clock.advance(10_500);
  t.same(await ips(server), ["192.0.2.9"], "other addresses are removed");
  await using counting = await served("2001:db8::9", "master-count");
  t.equal((await counting.send(`GET ${SLICE}`)).json.addressType, "IPv6");
  await patch(counting, ENDPOINTS, {
    subsets: [{ addresses: [{ ip: "2001:db8::8" }], ports: [{ name: "https", port: 6443 }] }],
  });
  await counting.clock.advance(10_500);
  t.same(await ips(counting), ["2001:db8::8", "2001:db8::9"], "no address is removed");
  await using disabled = await served("192.0.2.9", "none");
  t.equal((await disabled.send(`GET ${ENDPOINTS}`)).status, 404);
});

t.test("serverIdentity() is Kubernetes' hash of the host and the component", async (t) => {
  t.equal(serverIdentity("node-1"), "apiserver-lgabes5ywnaqeagh5dny4zlzs4");
});

t.test("EndpointReconciler sets the port at its start, and keeps that of another server later", async (t) => {
  await using server = await served("192.0.2.9");
  const port = async () => {
    const [endpoints, slice] = [await server.send(`GET ${ENDPOINTS}`), await server.send(`GET ${SLICE}`)];
    return [endpoints.json.subsets[0].ports[0].port, slice.json.ports[0].port];
  };
  const [own] = await port();
  const others = [{ name: "https", port: 7443, protocol: "TCP" }];
  await patch(server, ENDPOINTS, { subsets: [{ addresses: [{ ip: "192.0.2.9" }], ports: others }] });
  await server.clock.advance(10_500);
  t.same(await port(), [7443, 7443]);
  await patch(server, ENDPOINTS, { subsets: [] });
  await server.clock.advance(10_500);
  t.same(await port(), [own, own], "none is published");
});

t.test("EndpointReconciler replaces a slice of the other type of addresses, and corrects labels", async (t) => {
  await using server = await served("192.0.2.9");
  const slice = (await server.send(`GET ${SLICE}`)).json;
  await server.send(`DELETE ${SLICE}`);
  const { name, namespace } = slice.metadata;
  const body = { ...slice, metadata: { name, namespace }, addressType: "IPv6", endpoints: [] };
  await server.send(`POST ${SLICE.slice(0, SLICE.lastIndexOf("/"))}`, { body });
  await server.clock.advance(10_500);
  const replaced = (await server.send(`GET ${SLICE}`)).json;
  t.match(replaced, { addressType: "IPv4", endpoints: [{ addresses: ["192.0.2.9"] }] });
  await patch(server, SLICE, { metadata: { labels: { "kubernetes.io/service-name": "other", more: "x" } } });
  await server.clock.advance(10_500);
  t.same((await server.send(`GET ${SLICE}`)).json.metadata.labels, slice.metadata.labels);
});

for (const type of ["lease", "master-count"] as const) {
  t.test(`EndpointReconciler removes a server that stops, unless it is the last one, with type ${type}`, async (t) => {
    const store = keepOpen(createMemoryStore({ clock: new FakeClock() }));
    const started = (address: string) => served(address, type, {}, { store });
    const ips = async ({ send }: TestServer): Promise<readonly string[]> =>
      (await send(`GET ${ENDPOINTS}`)).json.subsets[0].addresses.map(({ ip }: { ip: string }) => ip);
    await using first = await started("192.0.2.8");
    {
      await using second = await started("192.0.2.9");
      t.same(await ips(second), ["192.0.2.8", "192.0.2.9"]);
    }
    t.same(await ips(first), ["192.0.2.8"]);
  });
}

t.test("ensureFlowControl() keeps changes with autoupdate-spec false, except of mandatory objects", async (t) => {
  await using server = await served();
  const precedence = async (name: string) =>
    (await server.send(`GET ${FLOW_CONTROL}/flowschemas/${name}`)).json.spec.matchingPrecedence;
  const annotations = { "apf.kubernetes.io/autoupdate-spec": "false" };
  const spec = { matchingPrecedence: 77 };
  await patch(server, `${FLOW_CONTROL}/flowschemas/probes`, { spec });
  await patch(server, `${FLOW_CONTROL}/flowschemas/service-accounts`, { metadata: { annotations }, spec });
  const mine = { name: "of-old", annotations: { "apf.kubernetes.io/autoupdate-spec": "true" } };
  const rules = (await server.send(`GET ${FLOW_CONTROL}/flowschemas/probes`)).json.spec;
  await server.send(`POST ${FLOW_CONTROL}/flowschemas`, { body: { metadata: mine, spec: rules } });
  await server.clock.advance(61_000);
  t.equal(await precedence("probes"), 2);
  t.equal(await precedence("service-accounts"), 77);
  t.equal((await server.send(`GET ${FLOW_CONTROL}/flowschemas/of-old`)).status, 404);
});

t.test("the condition Dangling of a flow schema follows its priority level", async (t) => {
  await using server = await served();
  const nonResourceRules = [{ verbs: ["get"], nonResourceURLs: ["/zz"] }];
  const spec = {
    priorityLevelConfiguration: { name: "mine" },
    matchingPrecedence: 9000,
    rules: [{ subjects: [{ kind: "User", user: { name: "x" } }], nonResourceRules }],
  };
  await server.send(`POST ${FLOW_CONTROL}/flowschemas`, { body: { metadata: { name: "a" }, spec } });
  const dangling = async () => (await server.send(`GET ${FLOW_CONTROL}/flowschemas/a`)).json.status.conditions[0];
  await server.clock.advance(1000);
  t.match(await dangling(), {
    type: "Dangling",
    status: "True",
    reason: "NotFound",
    message: /"mine" but there is no/,
  });
  const level = { type: "Limited", limited: { nominalConcurrencyShares: 1, limitResponse: { type: "Reject" } } };
  const body = { metadata: { name: "mine" }, spec: level };
  t.equal((await server.send(`POST ${FLOW_CONTROL}/prioritylevelconfigurations`, { body })).status, 201);
  await server.clock.advance(1000);
  t.match(await dangling(), { status: "False", reason: "Found", message: /"mine" and it exists$/ });
});
