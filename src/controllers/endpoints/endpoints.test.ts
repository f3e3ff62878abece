/** The three controllers of endpoints against an API server in memory. */
import t, { type Test } from "tap";
import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import type { EndpointSubset, Endpoints } from "../../api/core/endpoints/schema.ts";
import { eventKind } from "../../api/core/event/kind.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { ServiceSpec } from "../../api/core/service/schema.ts";
import { endpointSliceKind } from "../../api/discovery/endpoint-slice/kind.ts";
import type { EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";
import type { Client } from "../../client/client.ts";
import { createSharedInformers } from "../../client/informer/shared-informers.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { startInMemoryCluster } from "../../testing/apiserver/in-memory-cluster.ts";
import { startController } from "../../testing/controllers/start-controller.ts";
import { objectsOf, syncOnce } from "../../testing/controllers/sync-once.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { defaultControllerOptions, type EndpointsOptions } from "../controller-options.ts";
import { runEndpointSliceController } from "./endpoint-slice-controller.ts";
import { runEndpointSliceMirroringController } from "./endpoint-slice-mirroring-controller.ts";
import { exceedsCapacity, repackSubsets, truncateSubsets } from "./endpoint-subsets.ts";
import { runEndpointsController } from "./endpoints-controller.ts";
import { sortSlicePorts } from "./port-order.ts";
import { PortResolver } from "./port-resolver.ts";

const CONTROLLERS = [runEndpointSliceController, runEndpointsController, runEndpointSliceMirroringController];
const namespace = "shop";

interface Cluster {
  readonly client: Client;
  readonly clock: FakeClock;
  /** Lets the controllers do what is due within the time. */
  pass(milliseconds?: number): Promise<void>;
}

async function start(
  t: Pick<Test, "teardown">,
  instances = 1,
  endpoints: Partial<EndpointsOptions> = {},
): Promise<Cluster> {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, { embeddedControllers: ["serviceaccount"] }, clock);
  await runControllers(t, client, clock, instances, endpoints);
  const pass = async (milliseconds = 100): Promise<void> => {
    for (let passed = 0; passed < milliseconds; passed += 50) {
      await clock.advance(50);
      for (let turn = 0; turn < 8; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
    }
  };
  await client.create(namespaceKind, { metadata: { name: namespace } });
  for (const [name, zone] of [
    ["n1", "za"],
    ["n2", "zb"],
  ] as const) {
    await client.create(nodeKind, { metadata: { name, labels: { "topology.kubernetes.io/zone": zone } } });
  }
  await pass(500);
  return { client, clock, pass };
}

/** Two instances are two processes: each has informers of its own. */
async function runControllers(
  t: Pick<Test, "teardown">,
  client: Client,
  clock: Clock,
  instances: number,
  endpoints: Partial<EndpointsOptions>,
): Promise<void> {
  const options = {
    ...defaultControllerOptions,
    endpoints: { ...defaultControllerOptions.endpoints, ...endpoints },
  };
  const stop = new AbortController();
  const running: Promise<void>[] = [];
  const common = { client, clock, random: systemRandom, log: silentLogger };
  for (let instance = 0; instance < instances; instance++) {
    const informers = createSharedInformers(common, stop.signal);
    const deps = { ...common, observer: client, informers, kinds: [], options };
    running.push(...CONTROLLERS.map((run) => run({ ...deps, signal: stop.signal })));
  }
  t.teardown(async () => {
    stop.abort(new DOMException("The test is over", "AbortError"));
    await Promise.all(running);
  });
}

async function createService({ client }: Cluster, spec: ServiceSpec, name = "web"): Promise<void> {
  await client.create(serviceKind, { metadata: { name, namespace, labels: { team: "a" } }, spec });
}

interface PodOptions {
  readonly ip?: string;
  readonly node?: string;
  readonly ready?: boolean;
  readonly spec?: Partial<Pod["spec"]>;
}

async function createPod({ client, clock }: Cluster, name: string, options: PodOptions = {}): Promise<void> {
  const { ip = `10.1.0.${name.length}`, node = "n1", ready = true, spec = {} } = options;
  await client.create(podKind, {
    metadata: { name, namespace, labels: { app: "web" } },
    spec: { containers: [{ name: "c", image: "i" }], nodeName: node, ...spec },
  });
  const lastTransitionTime = new Date(clock.now()).toISOString().replace(/\.\d+/, "");
  await client.patch(
    podKind,
    { name, namespace },
    "strategic",
    {
      status: {
        phase: "Running",
        podIP: ip,
        podIPs: [{ ip }],
        conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime }],
      },
    },
    { subresource: "status" },
  );
}

/** `IPv4 80/TCP: 10.1.0.1 ready n1`. */
async function slicesOf({ client }: Cluster, service = "web"): Promise<readonly string[]> {
  const { items } = await client.list(endpointSliceKind, {
    namespace,
    labelSelector: `kubernetes.io/service-name=${service}`,
  });
  return items.map(describeSlice).sort();
}

function describeSlice({ addressType, ports, endpoints, metadata }: EndpointSlice): string {
  const listed = (ports ?? []).map(({ name, port, protocol }) => `${name === "" ? "" : `${name}=`}${port}/${protocol}`);
  const described = (endpoints ?? []).map(({ addresses, conditions, nodeName, hostname, hints }) => {
    const states = [
      conditions?.ready === true ? "ready" : "unready",
      ...(conditions?.terminating === true ? ["terminating"] : []),
      ...(hostname === undefined ? [] : [hostname]),
      ...(hints?.forZones ?? []).map(({ name }) => `for ${name}`),
    ];
    return [addresses.join("+"), ...states, ...(nodeName === undefined ? [] : [nodeName])].join(" ");
  });
  const manager = metadata?.labels?.["endpointslice.kubernetes.io/managed-by"] ?? "";
  const prefix = manager.startsWith("endpointslicemirroring") ? "mirror " : "";
  return `${prefix}${addressType} ${listed.join(",")}: ${described.join("; ")}`;
}

/** `80: 10.1.0.1 | unready 10.1.0.2`. */
async function endpointsOf({ client }: Cluster, name = "web"): Promise<readonly string[] | undefined> {
  const found = await client.get(endpointsKind, { name, namespace }).catch(() => undefined as Endpoints | undefined);
  return found === undefined ? undefined : (found.subsets ?? []).map(describeSubset);
}

function describeSubset({ addresses = [], notReadyAddresses = [], ports = [] }: EndpointSubset): string {
  const listed = [...addresses.map(({ ip }) => ip), ...notReadyAddresses.map(({ ip }) => `unready ${ip}`)];
  return `${ports.map(({ port }) => port).join()}: ${listed.join(" | ")}`;
}

const selector = { app: "web" };
const ports = [{ port: 80 }];

t.test("the pods that a service selects become its endpoints, and leave when they are unready or gone", async (t) => {
  const cluster = await start(t);
  await createService(cluster, { selector, ports });
  await cluster.pass();
  t.same(await slicesOf(cluster), ["IPv4 : "], "an empty slice stands for no endpoints");
  t.same(await endpointsOf(cluster), []);
  await createPod(cluster, "p");
  await createPod(cluster, "pp", { ready: false, node: "n2" });
  await cluster.pass(2000);
  t.same(await slicesOf(cluster), ["IPv4 80/TCP: 10.1.0.1 ready n1; 10.1.0.2 unready n2"]);
  t.same(await endpointsOf(cluster), ["80: 10.1.0.1 | unready 10.1.0.2"]);
  await cluster.client.delete(podKind, { name: "p", namespace }, { gracePeriodSeconds: 0 });
  await cluster.pass(2000);
  t.same(await slicesOf(cluster), ["IPv4 80/TCP: 10.1.0.2 unready n2"]);
  await cluster.client.delete(serviceKind, { name: "web", namespace });
  await cluster.pass();
  t.equal(await endpointsOf(cluster), undefined, "Endpoints are deleted with the service");
});

t.test("a named target port has the number of each pod's port", async (t) => {
  const cluster = await start(t);
  await createService(cluster, { selector, ports: [{ port: 80, targetPort: "http" }] });
  const withPort = (containerPort: number): PodOptions => ({
    spec: { containers: [{ name: "c", image: "i", ports: [{ name: "http", containerPort }] }] },
  });
  await createPod(cluster, "p", withPort(8080));
  await createPod(cluster, "pp", withPort(9090));
  await cluster.pass(3000);
  t.same(await slicesOf(cluster), ["IPv4 8080/TCP: 10.1.0.1 ready n1", "IPv4 9090/TCP: 10.1.0.2 ready n1"]);
  t.same((await endpointsOf(cluster))?.toSorted(), ["8080: 10.1.0.1", "9090: 10.1.0.2"]);
});

t.test("a slice holds at most 100 endpoints", async (t) => {
  const cluster = await start(t);
  await createService(cluster, { selector, ports });
  for (let i = 1; i <= 101; i++) await createPod(cluster, `p${i}`, { ip: `10.1.1.${i}` });
  await cluster.pass(4000);
  const { items } = await cluster.client.list(endpointSliceKind, { namespace });
  const counts = items.map(({ endpoints }) => endpoints.length);
  t.equal(
    counts.reduce((sum, count) => sum + count, 0),
    101,
  );
  t.ok(Math.max(...counts) <= 100);
});

t.test("a pod on an unknown node is left out, and an event says so", async (t) => {
  const cluster = await start(t);
  await createService(cluster, { selector, ports });
  await createPod(cluster, "p", { node: "unknown" });
  await cluster.pass(500);
  t.same(await slicesOf(cluster), ["IPv4 : "]);
  await cluster.client.create(nodeKind, { metadata: { name: "unknown" } });
  await cluster.pass(5000);
  t.same(await slicesOf(cluster), ["IPv4 80/TCP: 10.1.0.1 ready unknown"], "the sync is retried");
});

t.test("PreferClose gives each ready endpoint a hint for its zone, and its removal takes them away", async (t) => {
  const cluster = await start(t);
  await createService(cluster, { selector, ports, trafficDistribution: "PreferClose" });
  await createPod(cluster, "p");
  await createPod(cluster, "pp", { node: "n2" });
  await cluster.pass(2000);
  t.same(await slicesOf(cluster), ["IPv4 80/TCP: 10.1.0.1 ready for za n1; 10.1.0.2 ready for zb n2"]);
  const patch = { spec: { trafficDistribution: null } };
  await cluster.client.patch(serviceKind, { name: "web", namespace }, "merge", patch);
  await cluster.pass(2000);
  t.same(await slicesOf(cluster), ["IPv4 80/TCP: 10.1.0.1 ready n1; 10.1.0.2 ready n2"]);
});

t.test("a slice that was deleted or emptied by hand is restored after a second", async (t) => {
  const cluster = await start(t);
  await createService(cluster, { selector, ports });
  await createPod(cluster, "p");
  await cluster.pass(2000);
  const wanted = await slicesOf(cluster);
  const [slice] = (await cluster.client.list(endpointSliceKind, { namespace })).items;
  const name = { name: slice?.metadata?.name ?? "", namespace };
  await cluster.client.patch(endpointSliceKind, name, "merge", { endpoints: [] });
  await cluster.pass(2000);
  t.same(await slicesOf(cluster), wanted);
  await cluster.client.delete(endpointSliceKind, name);
  await cluster.pass(2500);
  t.same(await slicesOf(cluster), wanted);
});

t.test("Endpoints of a service without a selector are mirrored until they or the service change", async (t) => {
  const cluster = await start(t);
  const subsets = [
    {
      addresses: [{ ip: "1.2.3.4" }, { ip: "2001:db8::1" }],
      notReadyAddresses: [{ ip: "1.2.3.5" }],
      ports: [{ port: 80 }],
    },
  ];
  await cluster.client.create(endpointsKind, { metadata: { name: "web", namespace }, subsets });
  await cluster.pass();
  t.same(await slicesOf(cluster), [], "nothing is mirrored without a service");
  await createService(cluster, { ports });
  await cluster.pass();
  t.same(await slicesOf(cluster), [
    "mirror IPv4 80/TCP: 1.2.3.4 ready; 1.2.3.5 unready",
    "mirror IPv6 80/TCP: 2001:db8::1 ready",
  ]);
  const label = { metadata: { labels: { "endpointslice.kubernetes.io/skip-mirror": "true" } } };
  await cluster.client.patch(endpointsKind, { name: "web", namespace }, "merge", label);
  await cluster.pass();
  t.same(await slicesOf(cluster), []);
});

t.test("two instances of the controllers agree on the endpoints", async (t) => {
  const cluster = await start(t, 2);
  await createService(cluster, { selector, ports });
  await createPod(cluster, "p");
  await createPod(cluster, "pp", { node: "n2" });
  await cluster.pass(10_000);
  await cluster.client.delete(podKind, { name: "p", namespace }, { gracePeriodSeconds: 0 });
  await cluster.pass(10_000);
  const slices = await slicesOf(cluster);
  t.ok(slices.includes("IPv4 80/TCP: 10.1.0.2 ready n2"), slices.join());
  t.notOk(slices.some((slice) => slice.includes("10.1.0.1")));
  t.same(await endpointsOf(cluster), ["80: 10.1.0.2"]);
});

t.test("a failed write is retried, and an event says so", async (t) => {
  const cluster = await start(t);
  await createService(cluster, { selector, ports });
  await createPod(cluster, "p", { node: "unknown" });
  await cluster.pass(1500);
  const { items } = await cluster.client.list(eventKind, { namespace });
  const event = items.find(({ reason }) => reason === "FailedToUpdateEndpointSlices");
  t.equal(event?.type, "Warning");
  t.equal(event?.source?.component, "endpoint-slice-controller");
  t.match(
    event?.message,
    /^Error updating Endpoint Slices for Service shop\/web: skipping Pod p for Service shop\/web: /,
  );
});

t.test(
  "a mirrored slice found at the start gets new Endpoints as its owner, and is restored when deleted",
  async (t) => {
    const subsets = [{ addresses: [{ ip: "1.2.3.4" }], ports: [{ port: 80 }] }];
    const mirrored = { metadata: { name: "web", namespace }, subsets };
    const first = await start(t);
    await createService(first, { ports });
    await first.client.create(endpointsKind, mirrored);
    await first.pass();
    const [slice] = (await first.client.list(endpointSliceKind, { namespace })).items;
    const { name = "", labels, ownerReferences = [] } = slice?.metadata ?? {};
    for (const isOwner of [true, false]) {
      const restarted = await start(t, 0);
      const { client, clock } = restarted;
      await client.create(serviceKind, { metadata: { name: "web", namespace }, spec: { ports } });
      const uid = (await client.create(endpointsKind, mirrored)).metadata?.uid;
      const owner = { ...ownerReferences[0]!, uid: isOwner ? uid! : "former" };
      const metadata = { name, namespace, labels, ownerReferences: [owner] };
      const created = await client.create(endpointSliceKind, { ...slice!, metadata });
      startController(t, runEndpointSliceMirroringController, client, clock);
      await restarted.pass(500);
      const found = await client.get(endpointSliceKind, { name, namespace });
      t.equal(found.metadata?.ownerReferences?.[0]?.uid, uid);
      t.equal(found.metadata?.resourceVersion === created.metadata?.resourceVersion, isOwner, "written only if needed");
      await client.delete(endpointSliceKind, { name, namespace });
      await restarted.pass(500);
      const { items } = await client.list(endpointSliceKind, { namespace });
      t.same(items[0]?.endpoints, found.endpoints, "restored");
    }
  },
);

t.test("topology-mode Auto allocates endpoints to zones by their CPUs, and reports when it cannot", async (t) => {
  const cluster = await start(t);
  const annotate = (mode: string | null) => ({
    metadata: { annotations: { "service.kubernetes.io/topology-mode": mode } },
  });
  await createService(cluster, { selector, ports });
  await cluster.client.patch(serviceKind, { name: "web", namespace }, "merge", annotate("Auto"));
  for (const [index, node] of ["n1", "n1", "n1", "n2"].entries()) {
    await createPod(cluster, `p${index}`, { ip: `10.1.0.${index}`, node });
  }
  await cluster.pass(1000);
  const status = {
    allocatable: { cpu: "4" },
    conditions: [{ type: "Ready", status: "True" }],
  };
  for (const name of ["n1", "n2"]) {
    await cluster.client.patch(nodeKind, { name }, "strategic", { status }, { subresource: "status" });
  }
  await cluster.pass(1000);
  await cluster.client.patch(serviceKind, { name: "web", namespace }, "merge", {
    metadata: { labels: { changed: "1" } },
  });
  await cluster.pass(1000);
  const [slice = ""] = await slicesOf(cluster);
  t.equal(slice.match(/for za/g)?.length, 2);
  t.equal(slice.match(/for zb/g)?.length, 2);
  await cluster.client.patch(serviceKind, { name: "web", namespace }, "merge", annotate(null));
  await cluster.pass(1000);
  t.notMatch((await slicesOf(cluster))[0], "for z");
  const { items } = await cluster.client.list(eventKind, { namespace });
  const messages = items.filter(({ reason }) => reason?.startsWith("TopologyAware")).map(({ message }) => message);
  t.same(
    new Set(messages),
    new Set([
      "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, addressType: IPv4",
      "Topology Aware Hints has been enabled, addressType: IPv4",
      "Topology Aware Hints has been disabled, addressType: IPv4",
    ]),
  );
});

t.test("more than 1000 addresses are truncated in Endpoints, the unready ones first", async (t) => {
  const addressesOf = (count: number, third: number) =>
    Array.from({ length: count }, (_, index) => ({ ip: `10.${third}.${index >> 8}.${index & 255}` }));
  const subsets = [
    { addresses: addressesOf(600, 1), notReadyAddresses: addressesOf(300, 2), ports: [{ port: 80 }] },
    { addresses: addressesOf(300, 3), notReadyAddresses: addressesOf(300, 4), ports: [{ port: 90 }] },
  ];
  t.ok(exceedsCapacity(subsets));
  const truncated = truncateSubsets(subsets);
  const counts = truncated.map(({ addresses = [], notReadyAddresses = [] }) => [
    addresses.length,
    notReadyAddresses.length,
  ]);
  t.same(counts, [
    [600, 50],
    [300, 50],
  ]);
  const ready = [{ addresses: addressesOf(1200, 1), notReadyAddresses: addressesOf(5, 2) }];
  t.same(
    truncateSubsets(ready).map(({ addresses = [], notReadyAddresses }) => [addresses.length, notReadyAddresses]),
    [[1000, undefined]],
  );
});

t.test("repackSubsets() makes one subset of the ports that addresses share", async (t) => {
  const [first, second] = [{ ip: "10.1.0.1" }, { ip: "10.1.0.2" }];
  const packed = repackSubsets([
    { addresses: [second], ports: [{ port: 80 }] },
    { addresses: [first], ports: [{ port: 80 }] },
    { addresses: [first, second], ports: [{ port: 90 }] },
    { addresses: [first], notReadyAddresses: [first], ports: [{ port: 70 }] },
  ]);
  t.same(
    packed.map(({ addresses, notReadyAddresses }) => ({ addresses, notReadyAddresses })),
    [
      { addresses: [first, second], notReadyAddresses: undefined },
      { addresses: undefined, notReadyAddresses: [first] },
    ],
  );
  t.same(packed[0]?.ports?.map(({ port }) => port).toSorted(), [80, 90]);
});

t.test("repackSubsets() reads each list of ports once, and leaves too many combinations as they are", async (t) => {
  const addresses = Array.from({ length: 10_000 }, (_, i) => ({ ip: `10.1.${i >> 8}.${i & 255}` }));
  const many = Array.from({ length: 4000 }, (_, i) => ({ name: `p${i}`, port: i + 1 }));
  const [packed, ...none] = repackSubsets([
    { addresses, ports: many },
    { addresses: [{ ip: "10.2.0.1" }], ports: many },
  ]);
  t.same([packed?.addresses?.length, packed?.ports?.length, none], [10_001, 4000, []]);
  const own = many.slice(0, 200).map((port) => ({ addresses: addresses.slice(0, 1000), ports: [port] }));
  // Each port has addresses of its own, and shares the others with the first subset.
  const crossed = own.map((subset, i) => ({ ...subset, addresses: [...subset.addresses, { ip: `10.3.0.${i}` }] }));
  t.equal(repackSubsets(crossed), crossed);
});

t.test("sortSlicePorts() orders ports by the FNV-1a hash of their Go text", async (t) => {
  const names = Array.from({ length: 300 }, (_, i) => `port-${"x".repeat(i % 50)}${i}`);
  const ports = names.map((name, i) => ({ name, protocol: "TCP" as const, port: i + 1 }));
  const hashOf = (text: string): bigint => {
    let hash = 0x6c62272e07bb014262b821756295c58dn;
    for (const byte of Buffer.from(text)) {
      hash = ((hash ^ BigInt(byte)) * 0x1000000000000000000013bn) & ((1n << 128n) - 1n);
    }
    return hash;
  };
  const printed = ({ name, port }: (typeof ports)[number]): string =>
    `(v1.EndpointPort){Name:(*string)${name} Protocol:(*v1.Protocol)TCP ` +
    `Port:(*int32)${port} AppProtocol:(*string)<nil>}`;
  const expected = ports.toSorted((a, b) => (hashOf(printed(a)) < hashOf(printed(b)) ? -1 : 1));
  t.same(sortSlicePorts(ports), expected);
});

t.test("PortResolver shares the lists of pods with the same numbers, and makes a bounded number of them", async (t) => {
  const podOf = (first: number, name = "p0") =>
    ({ spec: { containers: [{ name: "c", ports: [{ name, protocol: "TCP", containerPort: first }] }] } }) as Pod;
  const wanted = Array.from({ length: 40_000 }, (_, i) => ({ port: i, protocol: "TCP" as const, targetPort: i + 1 }));
  const named = [{ port: 1, protocol: "TCP" as const, targetPort: "p0" }, ...wanted];
  const resolver = new PortResolver(named, (ports) => ports.map(({ port }) => port));
  t.equal(resolver.portsOf(podOf(7)), resolver.portsOf(podOf(7)));
  t.same(resolver.portsOf(podOf(7))?.slice(0, 2), [7, 1]);
  t.same(resolver.portsOf(podOf(7, "other"))?.slice(0, 2), [1, 2]);
  t.same(resolver.portsOf(podOf(9))?.slice(0, 2), [9, 1]);
  t.equal(resolver.portsOf(podOf(11)), undefined);
});

t.test("Endpoints without the pods whose ports are too many come with an event", async (t) => {
  // Ports that no pod has: the lists are short.
  const absent = { port: 1, targetPort: "absent", protocol: "TCP" as const };
  const spec = {
    selector,
    ports: [{ port: 1, targetPort: "own", protocol: "TCP" as const }, ...Array(50_001).fill(absent)],
  };
  const pods = [7, 8, 9].map((containerPort) => ({
    metadata: { name: `pod-${containerPort}`, namespace, labels: selector },
    spec: { containers: [{ name: "c", ports: [{ name: "own", containerPort, protocol: "TCP" as const }] }] },
    status: { phase: "Running" as const, podIP: "10.0.0.1", podIPs: [{ ip: "10.0.0.1" }] },
  }));
  const services = objectsOf(serviceKind, { metadata: { name: "web", namespace }, spec });
  const writes = await syncOnce(runEndpointsController, services, [objectsOf(podKind, ...pods)]);
  t.same(
    writes.filter((write) => write.startsWith("event")),
    ["event FailedToUpdateEndpoint skipping 1 pods, first pod-9: too many different ports"],
  );
});

t.test("sizes of slices and mirrored subsets are options, and changes of pods can be collected", async (t) => {
  const options = { perSlice: 2, mirroredPerSubset: 1, sliceBatchMs: 3000, endpointsBatchMs: 5000 };
  const cluster = await start(t, 1, options);
  await createService(cluster, { selector, ports });
  await cluster.pass(200);
  for (const name of ["p", "pp", "ppp"]) await createPod(cluster, name);
  await cluster.pass(2000);
  t.same(await slicesOf(cluster), ["IPv4 : "], "not yet");
  await cluster.pass(2000);
  t.same(await slicesOf(cluster), [
    "IPv4 80/TCP: 10.1.0.1 ready n1; 10.1.0.2 ready n1",
    "IPv4 80/TCP: 10.1.0.3 ready n1",
  ]);
  t.same(await endpointsOf(cluster), []);
  await cluster.pass(2500);
  t.same(await endpointsOf(cluster), ["80: 10.1.0.1 | 10.1.0.2 | 10.1.0.3"]);
  const subsets = [{ addresses: [{ ip: "1.2.3.4" }, { ip: "1.2.3.5" }], ports: [{ port: 80 }] }];
  await cluster.client.create(endpointsKind, { metadata: { name: "own", namespace }, subsets });
  await createService(cluster, { ports }, "own");
  await cluster.pass();
  t.same(await slicesOf(cluster, "own"), ["mirror IPv4 80/TCP: 1.2.3.4 ready"]);
  const { items } = await cluster.client.list(eventKind, { namespace });
  t.match(
    items.find(({ reason }) => reason === "TooManyAddressesToMirror")?.message,
    /^A max of 1 addresses .* 1 addresses/,
  );
});

t.test("Endpoints that are there at the start stay while the controller's list of services is older", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, { embeddedControllers: [] }, clock);
  await client.create(namespaceKind, { metadata: { name: namespace } });
  await client.create(serviceKind, { metadata: { name: "outside", namespace }, spec: { ports: [{ port: 80 }] } });
  for (const name of ["outside", "left"]) await client.create(endpointsKind, { metadata: { name, namespace } });
  const list: Client["list"] = async (kind, ...rest) => {
    const result = await client.list(kind, ...rest);
    return (kind as unknown) === serviceKind ? { ...result, items: [] } : result;
  };
  const replaced = new Map<unknown, unknown>(Object.entries({ list, streamsLists: false }));
  const behind = new Proxy(client, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (replaced.has(name)) return replaced.get(name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
  startController(t, runEndpointsController, behind, clock);
  const names = async () =>
    (await client.list(endpointsKind, { namespace })).items.map(({ metadata }) => metadata?.name);
  await until("the Endpoints without a service are deleted", async () => {
    await clock.advance(100);
    return !(await names()).includes("left");
  });
  t.same(await names(), ["outside"]);
});
