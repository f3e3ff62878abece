/** Endpoints and EndpointSlices, names of pods, host ports, and services that lead to pods. */
import assert from "node:assert/strict";
import { until } from "../../../testing/std/until.ts";
import type { Json } from "../harness/api.ts";
import { type Behaviours, PAUSE, podOf, type TestNamespace } from "../harness/behaviour.ts";
import { serverPod } from "../harness/node-program.ts";
import { addressesOf, runServers, serviceOf, untilReached } from "./services.ts";
import { expectAnswer, literally } from "./traffic.ts";

const SLICES = "discovery.k8s.io/v1";

const slicesOf = (at: TestNamespace, service: string, namespace = at.name): Promise<readonly Json[]> =>
  at.api.list(
    `${at.pathOf(SLICES, "EndpointSlice", "", namespace)}?labelSelector=kubernetes.io/service-name%3D${service}`,
  );

/** `name/port` of the ready endpoints of all slices. */
const targetsOf = (slices: readonly Json[]): readonly string[] =>
  slices
    .flatMap(({ endpoints, ports }) =>
      (endpoints ?? [])
        .filter(({ conditions }: Json) => conditions.ready !== false)
        .flatMap(({ targetRef }: Json) => (ports ?? []).map(({ port }: Json) => `${targetRef?.name}/${port}`)),
    )
    .sort();

async function waitTargets(at: TestNamespace, service: string, targets: readonly string[]): Promise<void> {
  await until(`the endpoints ${targets} of ${service}`, async () => {
    return targetsOf(await slicesOf(at, service)).join() === targets.join();
  });
  await until(`the Endpoints ${targets} of ${service}`, async () => {
    const { status, json } = await at.api.send(`GET ${at.path(`endpoints/${service}`)}`);
    if (status !== 200) return targets.length === 0;
    const found = (json.subsets ?? []).flatMap(({ addresses, ports }: Json) =>
      (addresses ?? []).flatMap(({ targetRef }: Json) => ports.map(({ port }: Json) => `${targetRef?.name}/${port}`)),
    );
    return found.sort().join() === targets.join();
  });
}

async function discoverSlices(at: TestNamespace): Promise<void> {
  const { groups } = await at.api.get("/apis");
  const { versions } = groups.find(({ name }: Json) => name === "discovery.k8s.io");
  assert.ok(versions.some(({ groupVersion }: Json) => groupVersion === SLICES));
  const { resources } = await at.api.get(`/apis/${SLICES}`);
  assert.ok(resources.some(({ name }: Json) => name === "endpointslices"));
}

/** Pods match one service by name of the port, the other by number. */
async function sliceMatchingPods(at: TestNamespace): Promise<void> {
  await discoverSlices(at);
  const ports = { container: { ports: [{ name: "example-name", containerPort: 8080 }] } };
  await at.runPod(serverPod("pod1", { labels: { foo: "bar", one: "yes" }, ...ports }));
  await at.runPod(serverPod("pod2", { labels: { foo: "bar" }, ...ports }));
  const port = [{ port: 80, targetPort: "example-name" }];
  await at.create(serviceOf("example-int-port", { selector: { one: "yes" }, ports: [{ port: 80, targetPort: 8080 }] }));
  await at.create(serviceOf("example-named-port", { selector: { foo: "bar" }, ports: port }));
  await at.create(serviceOf("example-no-match", { selector: { foo: "none" }, ports: port }));
  await waitTargets(at, "example-int-port", ["pod1/8080"]);
  await waitTargets(at, "example-named-port", ["pod1/8080", "pod2/8080"]);
  await waitTargets(at, "example-no-match", []);
  const [slice] = await slicesOf(at, "example-int-port");
  assert.equal(slice.addressType, "IPv4");
  assert.equal(slice.metadata.labels["endpointslice.kubernetes.io/managed-by"], "endpointslice-controller.k8s.io");
  const { status, spec } = await at.pod("pod1");
  const [endpoint] = slice.endpoints;
  assert.deepEqual(endpoint.addresses, [status.podIP]);
  assert.equal(endpoint.nodeName, spec.nodeName);
}

async function createAndDeleteSlices(at: TestNamespace): Promise<void> {
  await discoverSlices(at);
  await at.create(serviceOf("example-empty-selector", { selector: { does: "not-match" } }));
  await until("empty Endpoints", async () => {
    return (await at.api.send(`GET ${at.path("endpoints/example-empty-selector")}`)).status === 200;
  });
  await until("an EndpointSlice", async () => (await slicesOf(at, "example-empty-selector")).length === 1);
  await at.api.delete(at.path("services/example-empty-selector"));
  await at.api.waitGone(at.path("endpoints/example-empty-selector"));
  await until("the end of the slice", async () => (await slicesOf(at, "example-empty-selector")).length === 0);
}

async function pointToServer(at: TestNamespace): Promise<void> {
  await discoverSlices(at);
  const { spec } = await at.api.get("/api/v1/namespaces/default/services/kubernetes");
  assert.ok(spec.clusterIP);
  const { subsets } = await at.api.get("/api/v1/namespaces/default/endpoints/kubernetes");
  const slices = await slicesOf(at, "kubernetes", "default");
  assert.equal(slices.length, 1);
  const addresses = subsets[0].addresses.map(({ ip }: Json) => ip);
  assert.deepEqual(
    slices[0].endpoints.flatMap((endpoint: Json) => endpoint.addresses),
    addresses,
  );
  assert.deepEqual(slices[0].ports[0].port, subsets[0].ports[0].port);
}

async function mirror(at: TestNamespace): Promise<void> {
  await discoverSlices(at);
  const { selector: _, ...spec } = serviceOf("custom").spec as { selector: object; ports: object };
  await at.create({ apiVersion: "v1", kind: "Service", metadata: { name: "custom" }, spec });
  const subset = (ip: string) => [{ addresses: [{ ip }], ports: [{ port: 80, name: "http", protocol: "TCP" }] }];
  await at.create({ apiVersion: "v1", kind: "Endpoints", metadata: { name: "custom" }, subsets: subset("10.1.2.3") });
  const mirrored = async (ip: string): Promise<void> => {
    const [slice] = await until(`a mirrored slice of ${ip}`, async () => {
      const found = await slicesOf(at, "custom");
      return found.length === 1 && found[0].endpoints?.[0]?.addresses[0] === ip ? found : undefined;
    });
    assert.equal(
      slice.metadata.labels["endpointslice.kubernetes.io/managed-by"],
      "endpointslicemirroring-controller.k8s.io",
    );
    assert.equal(slice.ports[0].port, 80);
  };
  await mirrored("10.1.2.3");
  await at.api.update(at.path("endpoints/custom"), (endpoints) => {
    endpoints.subsets = subset("10.2.3.4");
  });
  await mirrored("10.2.3.4");
  await at.api.delete(at.path("endpoints/custom"));
  await until("the end of the slice", async () => (await slicesOf(at, "custom")).length === 0);
}

async function serveEndpoints(at: TestNamespace): Promise<void> {
  const service = serviceOf("endpoint-test2");
  const made = await at.create(service);
  await waitTargets(at, "endpoint-test2", []);
  await at.runPod(podOf("client", PAUSE));
  await at.runPod(serverPod("server-1", { labels: { app: "server" } }));
  await waitTargets(at, "endpoint-test2", ["server-1/8080"]);
  for (const address of await addressesOf(at, made)) await untilReached(at, address);
  await at.runPod(serverPod("server-2", { labels: { app: "server" } }));
  await waitTargets(at, "endpoint-test2", ["server-1/8080", "server-2/8080"]);
  await at.api.delete(at.path("pods/server-1"));
  await waitTargets(at, "endpoint-test2", ["server-2/8080"]);
  for (const address of await addressesOf(at, made)) await untilReached(at, address);
  await at.api.delete(at.path("pods/server-2"));
  await waitTargets(at, "endpoint-test2", []);
}

async function reachNodePort(at: TestNamespace): Promise<void> {
  const made = await at.create(serviceOf("nodeport-test", { type: "NodePort" }));
  assert.ok(made.spec.ports[0].nodePort >= 30_000);
  await runServers(at, 2);
  for (const address of await addressesOf(at, made)) await untilReached(at, address);
}

async function provideKubernetes(at: TestNamespace): Promise<void> {
  const { spec } = await at.api.get("/api/v1/namespaces/default/services/kubernetes");
  assert.deepEqual(
    spec.ports.map(({ name, port, protocol }: Json) => [name, port, protocol]),
    [["https", 443, "TCP"]],
  );
}

/** Two ports of the node differ in address or protocol only, and each leads to its pod. */
async function shareHostPort(at: TestNamespace): Promise<void> {
  const PORT = 54_323;
  const { status } = await at.node();
  const { address } = status.addresses.find(({ type }: Json) => type === "InternalIP");
  const pod = (name: string, port: object) =>
    serverPod(name, { container: { ports: [{ containerPort: 8080, hostPort: PORT, ...port }] } });
  await at.runPod(pod("pod1", { protocol: "TCP", hostIP: "127.0.0.1" }));
  await at.runPod(pod("pod2", { protocol: "TCP", hostIP: address }));
  await at.runPod(pod("pod3", { containerPort: 8081, protocol: "UDP", hostIP: address }));
  const readName = async (host: string): Promise<string> => (await fetch(`http://${host}:${PORT}/hostname`)).text();
  await until("an answer of the first pod", async () => (await readName("127.0.0.1").catch(() => "")) === "pod1");
  await until("an answer of the second pod", async () => (await readName(address).catch(() => "")) === "pod2");
  const dialler = await at.runPod(serverPod("dialler"));
  await until("an answer of the third pod", async () => {
    const url = `http://${dialler.status.podIP}:8080/dial?host=${address}&port=${PORT}`;
    return (await (await fetch(url)).text()) === "pod3\n";
  });
}

const addressOf = (ip: string): RegExp => new RegExp(`Address: ${literally(ip)}$`, "m");

/** A pod with host name and subdomain, in a headless service. */
async function nameOfPod(at: TestNamespace): Promise<void> {
  const subdomain = "dns-test-service-2";
  await at.create(serviceOf(subdomain, { clusterIP: "None", selector: { app: "dns-querier-2" } }));
  const spec = { hostname: "dns-querier-2", subdomain };
  const { status } = await at.runPod(podOf("querier", PAUSE, { labels: { app: "dns-querier-2" }, spec }));
  await at.runPod(podOf("client", PAUSE));
  const domain = `${at.name}.svc.cluster.local`;
  await expectAnswer(at, `dns-querier-2.${subdomain}.${domain}`, addressOf(status.podIP));
  await expectAnswer(at, `${subdomain}.${domain}`, addressOf(status.podIP));
  const hosts = await at.exec("querier", "cat /etc/hosts; busybox hostname -f");
  assert.match(
    hosts,
    new RegExp(`^${literally(status.podIP)}\tdns-querier-2\\.${subdomain}\\.${literally(domain)}\tdns-querier-2$`, "m"),
  );
}

async function nameOfServices(at: TestNamespace): Promise<void> {
  const { spec } = await at.create(serviceOf("test-service-2"));
  await at.create(serviceOf("dns-test-service", { clusterIP: "None" }));
  const server = serverPod("server", { labels: { app: "server" } });
  const { status } = await at.runPod(server);
  await at.runPod(podOf("client", PAUSE));
  for (const suffix of ["", `.${at.name}`, `.${at.name}.svc`]) {
    await expectAnswer(at, `test-service-2${suffix}`, addressOf(spec.clusterIP));
    await expectAnswer(at, `dns-test-service${suffix}`, addressOf(status.podIP));
  }
  const domain = `${at.name}.svc`;
  await expectAnswer(at, `_http._tcp.test-service-2.${domain}`, /service = 0 100 80 test-service-2\./, "srv");
  await expectAnswer(
    at,
    `_http._tcp.dns-test-service.${domain}`,
    /service = 0 100 8080 \S+\.dns-test-service\./,
    "srv",
  );
  const reverse = `${spec.clusterIP.split(".").reverse().join(".")}.in-addr.arpa`;
  const pointer = await at.exec("client", `busybox nslookup -type=ptr ${reverse}`);
  assert.match(pointer, new RegExp(`name = test-service-2\\.${literally(domain)}\\.cluster\\.local`));
}

async function ownHosts(at: TestNamespace): Promise<void> {
  const spec = { hostname: "dns-querier-1", subdomain: "dns-test-service" };
  await at.create(serviceOf("dns-test-service", { clusterIP: "None", selector: { app: "querier" } }));
  const { status } = await at.runPod(podOf("querier", PAUSE, { labels: { app: "querier" }, spec }));
  const name = `dns-querier-1.dns-test-service.${at.name}.svc.cluster.local`;
  const hosts = await at.exec("querier", "cat /etc/hosts");
  assert.match(hosts, new RegExp(`^${literally(status.podIP)}\t${literally(name)}\tdns-querier-1$`, "m"));
  assert.match(await at.exec("querier", `busybox ping -c 1 -w 5 ${name}`), new RegExp(literally(status.podIP)));
  assert.match(await at.exec("querier", "busybox ping -c 1 -w 5 dns-querier-1"), new RegExp(literally(status.podIP)));
}

async function setResolvers(at: TestNamespace): Promise<void> {
  const dnsConfig = { nameservers: ["1.1.1.1"], searches: ["resolv.conf.local"] };
  await at.runPod(podOf("configured", PAUSE, { spec: { dnsPolicy: "None", dnsConfig } }));
  const text = await at.exec("configured", "cat /etc/resolv.conf");
  assert.deepEqual(text.trim().split("\n"), ["search resolv.conf.local", "nameserver 1.1.1.1"]);
}

export const endpoints: Behaviours = {
  "DNS should provide /etc/hosts entries for the cluster": ownHosts,
  "DNS should provide DNS for pods for Hostname": nameOfPod,
  "DNS should provide DNS for pods for Subdomain": nameOfPod,
  "DNS should provide DNS for services": nameOfServices,
  "DNS should support configurable pod DNS nameservers": setResolvers,
  "EndpointSlice should create Endpoints and EndpointSlices for Pods matching a Service": sliceMatchingPods,
  "EndpointSlice should create and delete Endpoints and EndpointSlices for a Service with a selector specified":
    createAndDeleteSlices,
  "EndpointSlice should have Endpoints and EndpointSlices pointing to API Server": pointToServer,
  "EndpointSliceMirroring should mirror a custom Endpoints resource through create update and delete": mirror,
  "HostPort validates that there is no conflict between pods with same hostPort but different hostIP and protocol":
    shareHostPort,
  "Services should be able to create a functioning NodePort service": reachNodePort,
  "Services should provide secure master service": provideKubernetes,
  "Services should serve a basic endpoint from pods": serveEndpoints,
};
