import t, { type Test } from "tap";
import { eventKind } from "../../api/core/event/kind.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { ServiceSpec } from "../../api/core/service/schema.ts";
import { endpointSliceKind } from "../../api/discovery/endpoint-slice/kind.ts";
import type { Client } from "../../client/client.ts";
import { createSharedInformers } from "../../client/informer/shared-informers.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { startInMemoryCluster } from "../../testing/apiserver/in-memory-cluster.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { defaultControllerOptions } from "../controller-options.ts";
import { runLoadBalancerController } from "./load-balancer-controller.ts";

const namespace = "shop";

interface Cluster {
  readonly client: Client;
  pass(milliseconds?: number): Promise<void>;
}

async function start(t: Pick<Test, "teardown">): Promise<Cluster> {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, { embeddedControllers: ["serviceaccount"] }, clock);
  const stop = new AbortController();
  const common = { client, clock, random: systemRandom, log: silentLogger };
  const informers = createSharedInformers(common, stop.signal);
  const deps = { ...common, observer: client, informers, kinds: [], options: defaultControllerOptions };
  const running = runLoadBalancerController({ ...deps, signal: stop.signal });
  t.teardown(async () => {
    stop.abort(new DOMException("The test is over", "AbortError"));
    await running;
  });
  const pass = async (milliseconds = 200): Promise<void> => {
    for (let passed = 0; passed < milliseconds; passed += 50) {
      await clock.advance(50);
      for (let turn = 0; turn < 8; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
    }
  };
  await client.create(namespaceKind, { metadata: { name: namespace } });
  await pass(500);
  return { client, pass };
}

async function addNode(
  { client }: Cluster,
  name: string,
  addresses: Readonly<Record<string, string>>,
  labels: Readonly<Record<string, string>> = {},
): Promise<void> {
  await client.create(nodeKind, { metadata: { name, labels } });
  const status = {
    conditions: [{ type: "Ready", status: "True" }],
    addresses: Object.entries(addresses).map(([type, address]) => ({ type, address })),
    daemonEndpoints: { kubeletEndpoint: { Port: 10260 } },
  };
  await client.patch(nodeKind, { name }, "strategic", { status }, { subresource: "status" });
}

async function addService({ client, pass }: Cluster, name: string, spec: ServiceSpec): Promise<void> {
  await client.create(serviceKind, { metadata: { name, namespace }, spec: { type: "LoadBalancer", ...spec } });
  await pass();
}

async function ingressOf({ client }: Cluster, name: string): Promise<string> {
  const { status } = await client.get(serviceKind, { name, namespace });
  return (status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip).join();
}

async function eventsOf({ client }: Cluster, name: string): Promise<readonly string[]> {
  const { items } = await client.list(eventKind, { namespace });
  return items
    .filter(({ involvedObject }) => involvedObject.name === name)
    .map(({ type, reason, message, source }) => `${source?.component} ${type} ${reason}: ${message}`)
    .sort();
}

const ports = [{ port: 80 }];

t.test("a load balancer has the addresses of ready nodes, and follows them", async (t) => {
  const cluster = await start(t);
  await addNode(cluster, "n2", { InternalIP: "192.0.2.2" });
  await addNode(cluster, "n1", { InternalIP: "192.0.2.1", Hostname: "n1" });
  const label = { "node.kubernetes.io/exclude-from-external-load-balancers": "" };
  await addNode(cluster, "n3", { InternalIP: "192.0.2.3" }, label);
  await addService(cluster, "web", { ports });
  t.equal(await ingressOf(cluster, "web"), "192.0.2.1,192.0.2.2");
  const conditions = [{ type: "Ready", status: "False" }];
  await cluster.client.patch(
    nodeKind,
    { name: "n1" },
    "strategic",
    { status: { conditions } },
    { subresource: "status" },
  );
  await cluster.pass();
  t.equal(await ingressOf(cluster, "web"), "192.0.2.2");
  t.same(await eventsOf(cluster, "web"), [
    "service-controller Normal EnsuredLoadBalancer: Ensured load balancer",
    "service-controller Normal EnsuringLoadBalancer: Ensuring load balancer",
    "service-controller Normal UpdatedLoadBalancer: Updated load balancer with new hosts",
  ]);
});

t.test("external addresses of nodes are used where there are some", async (t) => {
  const cluster = await start(t);
  await addNode(cluster, "n1", { InternalIP: "192.0.2.1", ExternalIP: "198.51.100.1" });
  await addService(cluster, "web", { ports });
  t.equal(await ingressOf(cluster, "web"), "198.51.100.1");
});

t.test("with local external traffic only nodes with endpoints are addresses", async (t) => {
  const cluster = await start(t);
  await addNode(cluster, "n1", { InternalIP: "192.0.2.1" });
  await addNode(cluster, "n2", { InternalIP: "192.0.2.2" });
  await addService(cluster, "web", { ports, externalTrafficPolicy: "Local" });
  t.equal(await ingressOf(cluster, "web"), "");
  await cluster.client.create(endpointSliceKind, {
    metadata: { name: "web-1", namespace, labels: { "kubernetes.io/service-name": "web" } },
    addressType: "IPv4",
    endpoints: [{ addresses: ["10.1.0.1"], nodeName: "n2", conditions: { ready: true } }],
    ports: [{ port: 8080 }],
  });
  await cluster.pass();
  t.equal(await ingressOf(cluster, "web"), "192.0.2.2");
});

const ENSURING = "service-controller Normal EnsuringLoadBalancer: Ensuring load balancer";

t.test("a port that is taken is reported once, and the service gets it when it is free", async (t) => {
  const cluster = await start(t);
  await addNode(cluster, "n1", { InternalIP: "192.0.2.1" });
  await addService(cluster, "a", { ports });
  await addService(cluster, "b", {
    ports: [
      { port: 81, name: "x" },
      { port: 80, name: "y" },
    ],
  });
  await addService(cluster, "agent", { ports: [{ port: 10260 }] });
  await cluster.pass(2000);
  t.equal(await ingressOf(cluster, "b"), "");
  t.same(await eventsOf(cluster, "b"), [
    ENSURING,
    "service-controller Warning SyncLoadBalancerFailed: " +
      "Error syncing load balancer: port 80/TCP of the nodes is used by Service shop/a",
  ]);
  t.match(await eventsOf(cluster, "agent"), [ENSURING, /port 10260\/TCP of the nodes is used by the node's agent$/]);
  await cluster.client.delete(serviceKind, { name: "a", namespace });
  await cluster.pass();
  t.equal(await ingressOf(cluster, "b"), "192.0.2.1");
});

t.test("a host port of a pod is taken until the pod is gone", async (t) => {
  const cluster = await start(t);
  await addNode(cluster, "n1", { InternalIP: "192.0.2.1" });
  const containers = [{ name: "c", image: "i", ports: [{ containerPort: 80, hostPort: 80 }] }];
  await cluster.client.create(podKind, { metadata: { name: "p", namespace }, spec: { containers, nodeName: "n1" } });
  await addService(cluster, "web", { ports });
  t.match(await eventsOf(cluster, "web"), [ENSURING, /is used by Pod shop\/p$/]);
  await cluster.client.delete(podKind, { name: "p", namespace }, { gracePeriodSeconds: 0 });
  await cluster.pass();
  t.equal(await ingressOf(cluster, "web"), "192.0.2.1");
});

t.test(
  "services with a class are left alone, and one that is no load balancer any more loses its addresses",
  async (t) => {
    const cluster = await start(t);
    await addNode(cluster, "n1", { InternalIP: "192.0.2.1" });
    await addService(cluster, "other", { ports, loadBalancerClass: "example.com/lb" });
    t.equal(await ingressOf(cluster, "other"), "");
    await addService(cluster, "web", { ports });
    t.equal(await ingressOf(cluster, "web"), "192.0.2.1");
    await cluster.client.patch(serviceKind, { name: "web", namespace }, "merge", { spec: { type: "ClusterIP" } });
    await cluster.pass();
    t.equal(await ingressOf(cluster, "web"), "");
  },
);
