/** Services: types and their changes, session affinity, ports and protocols, status, and lists. */
import assert from "node:assert/strict";
import { until } from "../../../testing/std/until.ts";
import { waitReplicas } from "../apps/workloads.ts";
import type { Json } from "../harness/api.ts";
import { type Behaviour, type Behaviours, PAUSE, podOf, type TestNamespace } from "../harness/behaviour.ts";
import { serverPod, serverSpec } from "../harness/node-program.ts";

const labels = { app: "server" };

export function serviceOf(name: string, spec: object = {}) {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name },
    spec: { selector: labels, ports: [{ name: "http", port: 80, targetPort: 8080 }], ...spec },
  };
}

const deploymentOf = (replicas: number) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "server" },
  spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: serverSpec() } },
});

export async function runServers(at: TestNamespace, replicas: number): Promise<void> {
  const deployment = deploymentOf(replicas);
  await at.create(deployment);
  await at.runPod(podOf("client", PAUSE));
  await waitReplicas(at, deployment, replicas);
}

/** The host name that a server answers to the client, or an empty string. */
const readName = async (at: TestNamespace, address: string): Promise<string> =>
  await at.exec("client", `busybox timeout 3 wget -q -O - http://${address}/hostname 2>/dev/null || true`);

export async function untilReached(at: TestNamespace, address: string): Promise<void> {
  await until(`an answer of ${address}`, async () => /^server/.test(await readName(at, address)));
}

async function addressOfNode(at: TestNamespace): Promise<string> {
  const { status } = await at.node();
  return status.addresses.find(({ type }: Json) => type === "InternalIP").address;
}

/** The name, the cluster IP, and with a node port the address of the node. */
export async function addressesOf(at: TestNamespace, service: Json): Promise<readonly string[]> {
  const { name } = service.metadata;
  const { clusterIP, ports } = service.spec;
  const nodePort = ports[0].nodePort === undefined ? [] : [`${await addressOfNode(at)}:${ports[0].nodePort}`];
  return [`${name}:80`, `${clusterIP}:80`, ...nodePort];
}

const REQUESTS = 15;

/** The servers that answer repeated requests, of several in one run of the shell. */
async function serversOf(at: TestNamespace, address: string): Promise<ReadonlySet<string>> {
  const script = `for i in $(busybox seq ${REQUESTS}); do busybox timeout 3 wget -q -O - http://${address}/hostname; echo; done`;
  return new Set((await at.exec("client", script)).trim().split("\n"));
}

async function hasAffinity(at: TestNamespace, address: string): Promise<void> {
  await until(`one server behind ${address}`, async () => (await serversOf(at, address)).size === 1);
  assert.equal((await serversOf(at, address)).size, 1);
}

function testAffinity(type: "ClusterIP" | "NodePort", switched: boolean): Behaviour {
  return async (at) => {
    const service = serviceOf("affine", { type, sessionAffinity: "ClientIP" });
    const made = await at.create(service);
    assert.ok(made.spec.clusterIP);
    await runServers(at, 3);
    for (const address of await addressesOf(at, made)) {
      await untilReached(at, address);
      await hasAffinity(at, address);
    }
    if (!switched) return;
    const address = (await addressesOf(at, made)).at(-1) ?? "";
    await at.api.patch(at.pathOfObject(service), { spec: { sessionAffinity: "None", sessionAffinityConfig: null } });
    await until("several servers", async () => (await serversOf(at, address)).size > 1);
    await at.api.patch(at.pathOfObject(service), { spec: { sessionAffinity: "ClientIP" } });
    await hasAffinity(at, address);
  };
}

const EXTERNAL = "outside.example.com";

async function lookUp(at: TestNamespace, name: string): Promise<string> {
  return await at.exec("client", `busybox nslookup ${name}.${at.name}.svc.cluster.local 2>&1 || true`);
}

/** The service gets addresses and its servers answer; or it becomes an alias. */
function fromExternalName(type: "ClusterIP" | "NodePort"): Behaviour {
  return async (at) => {
    const service = serviceOf("changed", { type: "ExternalName", externalName: EXTERNAL });
    assert.equal((await at.create(service)).spec.clusterIP, undefined);
    await runServers(at, 1);
    const changed = await at.api.update(at.pathOfObject(service), ({ spec }) => {
      spec.type = type;
      spec.externalName = "";
      spec.ports = [{ port: 80, name: "http", protocol: "TCP", targetPort: 8080 }];
    });
    assert.ok(changed.spec.clusterIP);
    assert.equal(changed.spec.ports[0].nodePort !== undefined, type === "NodePort");
    for (const address of await addressesOf(at, changed)) await untilReached(at, address);
  };
}

function toExternalName(type: "ClusterIP" | "NodePort"): Behaviour {
  return async (at) => {
    const service = serviceOf("changed", { type });
    const { spec } = await at.create(service);
    assert.ok(spec.clusterIP);
    const target = serviceOf("target");
    await at.create(target);
    await runServers(at, 1);
    const externalName = `target.${at.name}.svc.cluster.local`;
    const changed = await at.api.update(at.pathOfObject(service), ({ spec }) => {
      Object.assign(spec, { type: "ExternalName", externalName, clusterIP: "", clusterIPs: null });
      for (const port of spec.ports) delete port.nodePort;
    });
    assert.equal(changed.spec.clusterIP, undefined);
    assert.equal(changed.spec.ports[0].nodePort, undefined);
    if (type === "NodePort") {
      const { nodePort } = spec.ports[0];
      await at.create(serviceOf("other", { type, ports: [{ port: 80, nodePort }] }));
    }
    const { clusterIP } = (await at.get(target)).spec;
    const answer = await until("the alias", async () => {
      const text = await lookUp(at, "changed");
      return text.includes("canonical name") ? text : undefined;
    });
    assert.match(answer, new RegExp(`canonical name = ${externalName.replaceAll(".", "\\.")}`));
    assert.match(answer, new RegExp(`Address: ${clusterIP.replaceAll(".", "\\.")}`));
  };
}

async function changeStatus(at: TestNamespace): Promise<void> {
  const service = { ...serviceOf("stated", { type: "LoadBalancer", loadBalancerClass: "example.com/none" }) };
  const path = at.pathOfObject(service);
  const labelled = { ...service, metadata: { name: "stated", labels: { "test-service-static": "true" } } };
  using watch = await at.api.watch(`${at.path("services")}?labelSelector=test-service-static%3Dtrue`);
  await at.create(labelled);
  await watch.wait("ADDED");
  assert.deepEqual((await at.api.get(`${path}/status`)).status, { loadBalancer: {} });
  const ingress = [{ ip: "203.0.113.1" }];
  await at.api.patch(`${path}/status`, {
    metadata: { annotations: { patchedstatus: "true" } },
    status: { loadBalancer: { ingress } },
  });
  const seen = await watch.wait("MODIFIED", ({ metadata }) => metadata.annotations?.patchedstatus === "true");
  assert.partialDeepStrictEqual(seen.status.loadBalancer.ingress, ingress);
  const condition = { type: "StatusUpdate", status: "True", reason: "E2E", message: "Set from the test" };
  await at.api.update(`${path}/status`, ({ status }) => {
    status.conditions = [{ ...condition, lastTransitionTime: "2026-01-01T00:00:00Z" }];
  });
  await watch.wait("MODIFIED", ({ status }) => status.conditions?.[0]?.type === "StatusUpdate");
  await at.api.patch(path, { metadata: { labels: { "test-service": "patched" } } });
  await watch.wait("MODIFIED", ({ metadata }) => metadata.labels["test-service"] === "patched");
  await at.api.delete(path);
  await watch.wait("DELETED");
}

async function deleteCollection(at: TestNamespace): Promise<void> {
  const make = (name: string, labels: object) => {
    const service = serviceOf(name, { type: "ClusterIP" });
    return at.create({ ...service, metadata: { name, labels } });
  };
  await make("one", { of: at.name });
  await make("two", { of: at.name });
  await make("three", { of: "other" });
  assert.equal((await at.api.list(at.path("services"))).length, 3);
  await at.api.delete(`${at.path("services")}?labelSelector=of%3D${at.name}`);
  const left = await at.api.list(at.path("services"));
  assert.deepEqual(
    left.map(({ metadata }) => metadata.name),
    ["three"],
  );
}

async function listEverywhere(at: TestNamespace): Promise<void> {
  const services = await at.api.list("/api/v1/services");
  assert.ok(services.some(({ metadata }) => metadata.name === "kubernetes" && metadata.namespace === "default"));
}

/** Whether the client's datagram is answered through the service. */
async function udpAnswers(at: TestNamespace, address: string): Promise<boolean> {
  const script = `wget -q -O - 'http://$SERVER:8080/dial?host=${address}&port=80' 2>/dev/null || true`;
  const { status } = await at.pod("dialler");
  return /^server/.test(await at.exec("client", script.replace("$SERVER", status.podIP)));
}

async function servePortsOfProtocols(at: TestNamespace): Promise<void> {
  const ports = {
    tcp: { name: "tcp-port", port: 80, protocol: "TCP", targetPort: 8080 },
    udp: { name: "udp-port", port: 80, protocol: "UDP", targetPort: 8081 },
  };
  const service = serviceOf("multiprotocol", { ports: [ports.tcp, ports.udp] });
  const { clusterIP } = (await at.create(service)).spec;
  await at.runPod(serverPod("dialler"));
  await runServers(at, 1);
  const tcp = async (): Promise<boolean> => /^server/.test(await readName(at, `${clusterIP}:80`));
  const udp = (): Promise<boolean> => udpAnswers(at, clusterIP);
  const reaches = async (expected: { readonly tcp: boolean; readonly udp: boolean }): Promise<void> => {
    await until(`traffic of ${JSON.stringify(expected)}`, async () => {
      return (await tcp()) === expected.tcp && (await udp()) === expected.udp;
    });
  };
  await reaches({ tcp: true, udp: true });
  const set = (only: object): Promise<Json> =>
    at.api.update(at.pathOfObject(service), ({ spec }) => {
      spec.ports = [only];
    });
  await set(ports.tcp);
  await reaches({ tcp: true, udp: false });
  await set(ports.udp);
  await reaches({ tcp: false, udp: true });
}

async function serveSeveralPorts(at: TestNamespace): Promise<void> {
  const service = serviceOf("multi", {
    ports: [
      { name: "portname1", port: 80, targetPort: "portname1" },
      { name: "portname2", port: 81, targetPort: "portname2" },
    ],
  });
  const { clusterIP } = (await at.create(service)).spec;
  await at.runPod(podOf("client", PAUSE));
  /** `name/port` of the pods, by the EndpointSlices. */
  const endpoints = async (expected: readonly string[]): Promise<void> => {
    await until(`the endpoints ${expected}`, async () => {
      const path = `${at.pathOf("discovery.k8s.io/v1", "EndpointSlice")}?labelSelector=kubernetes.io/service-name%3Dmulti`;
      const found = (await at.api.list(path)).flatMap(({ endpoints, ports }) =>
        (endpoints ?? []).flatMap((endpoint: Json) =>
          endpoint.conditions.ready === false
            ? []
            : (ports ?? []).map(({ name }: Json) => `${endpoint.targetRef.name}/${name}`),
        ),
      );
      return found.sort().join() === expected.join();
    });
  };
  const pod = (name: string, port: string) =>
    serverPod(name, { labels, container: { ports: [{ name: port, containerPort: 8080 }] } });
  await endpoints([]);
  await at.runPod(pod("server-1", "portname1"));
  await endpoints(["server-1/portname1"]);
  await at.runPod(pod("server-2", "portname2"));
  await endpoints(["server-1/portname1", "server-2/portname2"]);
  await until("an answer at the first port", async () => (await readName(at, `${clusterIP}:80`)) === "server-1");
  await until("an answer at the second port", async () => (await readName(at, `${clusterIP}:81`)) === "server-2");
  await at.api.delete(at.path("pods/server-1"));
  await endpoints(["server-2/portname2"]);
  await at.api.delete(at.path("pods/server-2"));
  await endpoints([]);
}

const ROUNDS = 100;

async function measureEndpoints(at: TestNamespace): Promise<void> {
  await at.runPod({ ...podOf("server", PAUSE, { labels }), apiVersion: "v1", kind: "Pod" });
  const path = at.pathOf("discovery.k8s.io/v1", "EndpointSlice");
  using watch = await at.api.watch(path);
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const name = `latency-${round}`;
    const began = performance.now();
    await at.create(serviceOf(name));
    await until("the endpoints of the service", () =>
      watch.events.some(({ object }) => {
        return object.metadata.labels["kubernetes.io/service-name"] === name && object.endpoints?.length === 1;
      }),
    );
    times.push(performance.now() - began);
    await at.api.delete(at.path(`services/${name}`));
  }
  times.sort((a, b) => a - b);
  const at50 = times[ROUNDS / 2] ?? 0;
  const at90 = times[ROUNDS * 0.9] ?? 0;
  assert.ok(at50 < 20_000, `median ${at50} ms`);
  assert.ok(at90 < 50_000, `90th percentile ${at90} ms`);
}

export const services: Behaviours = {
  "Service endpoints latency should not be very high": measureEndpoints,
  "Services should be able to change the type from ClusterIP to ExternalName": toExternalName("ClusterIP"),
  "Services should be able to change the type from ExternalName to ClusterIP": fromExternalName("ClusterIP"),
  "Services should be able to change the type from ExternalName to NodePort": fromExternalName("NodePort"),
  "Services should be able to change the type from NodePort to ExternalName": toExternalName("NodePort"),
  "Services should be able to switch session affinity for NodePort service": testAffinity("NodePort", true),
  "Services should be able to switch session affinity for service with type clusterIP": testAffinity("ClusterIP", true),
  "Services should complete a service status lifecycle": changeStatus,
  "Services should delete a collection of services": deleteCollection,
  "Services should find a service from listing all namespaces": listEverywhere,
  "Services should have session affinity work for NodePort service": testAffinity("NodePort", false),
  "Services should have session affinity work for service with type clusterIP": testAffinity("ClusterIP", false),
  "Services should serve endpoints on same port and different protocols": servePortsOfProtocols,
  "Services should serve multiport endpoints from pods": serveSeveralPorts,
};
