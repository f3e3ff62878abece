import t from "tap";
import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { Service, ServiceSpec } from "../../api/core/service/schema.ts";
import { ipAddressKind } from "../../api/networking/ip-address/kind.ts";
import { serviceCIDRKind } from "../../api/networking/service-cidr/kind.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { rejectionStatus } from "../../testing/registry/registry-fixture.ts";
import { type ServicesFixture, servicesFixture } from "../../testing/registry/service-allocation-fixture.ts";
import { create } from "../create.ts";
import { remove } from "../delete.ts";
import { get } from "../get.ts";
import { Registries } from "../registries.ts";
import { update } from "../update.ts";
import { ServiceAddresses } from "./addresses.ts";
import { ServiceAllocator } from "./allocator.ts";
import { NodePorts } from "./node-ports.ts";
import { RangeBitmap } from "./range-bitmap.ts";

const port = { port: 80 };

async function make(f: ServicesFixture, name: string, spec: ServiceSpec, dryRun = false): Promise<Service> {
  return await create(f.services, f.scope(), { metadata: { name }, spec: { ports: [port], ...spec } }, { dryRun });
}

async function change(f: ServicesFixture, service: Service, spec: Partial<ServiceSpec>): Promise<Service> {
  const name = service.metadata?.name ?? "";
  return (await update(f.services, f.scope(), name, { ...service, spec: { ...service.spec, ...spec } })).object;
}

t.test("ServiceAllocator allocates a cluster IP per service, and releases it with the service", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/29"]);
  const made = await Promise.all(["a", "b", "c", "d", "e", "f"].map(async (name) => await make(f, name, {})));
  const ips = made.map(({ spec }) => spec?.clusterIP ?? "").sort();
  t.same(ips, ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"]);
  t.same([...(await f.taken())].sort(), ips);
  t.match(await rejectionStatus(make(f, "g", {})), {
    code: 500,
    message: "Internal error occurred: failed to allocate a serviceIP: range is full",
  });
  await remove(f.services, f.scope(), "c");
  t.equal((await make(f, "g", {})).spec?.clusterIP, made[2]?.spec?.clusterIP);
});

t.test("ServiceAllocator rejects addresses with Kubernetes' messages", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/24"]);
  await make(f, "a", { clusterIP: "10.0.0.5" });
  const cases: readonly (readonly [ip: string, why: RegExp])[] = [
    ["10.0.0.5", /failed to allocate IP 10.0.0.5: provided IP is already allocated$/],
    ["10.0.0.0", /\(10.0.0.0\) is not in the valid range. The range of valid IPs is 10.0.0.0\/24$/],
    ["10.0.0.255", /is not in the valid range/],
    ["192.168.0.1", /the provided network does not match the current range$/],
    ["fd00::1", /IPv6 is not configured on this cluster/],
    ["x", /must be a valid IP address/],
  ];
  for (const [clusterIP, message] of cases) {
    t.match(await rejectionStatus(make(f, "b", { clusterIP })), { code: 422, message }, clusterIP);
  }
});

t.test("ServiceAllocator allocates nothing in a dry run, or for a write that fails", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/24"]);
  const tried = await make(f, "a", { type: "NodePort" }, true);
  t.match(tried.spec, { clusterIP: "10.0.0.0", ports: [{ nodePort: Number }] });
  t.match(await rejectionStatus(make(f, "a", { type: "NodePort", ports: [{ port: 0, nodePort: 30_001 }] })), {
    code: 422,
  });
  t.same(await f.taken(), []);
  const made = await make(f, "b", { type: "NodePort", ports: [{ port: 80, nodePort: 30_001 }] });
  t.equal(made.spec?.ports?.[0]?.nodePort, 30_001, "the port was released");
});

t.test("ServiceAllocator allocates no port twice to concurrent writes", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/24"]);
  const both = [port, { port: 80, protocol: "UDP" } as const].map((one, i) => ({ ...one, name: `p${i}` }));
  const made = await Promise.all(["a", "b", "c"].map(async (n) => await make(f, n, { type: "NodePort", ports: both })));
  const pairs = made.map(({ spec }) => spec?.ports?.map(({ nodePort }) => nodePort));
  for (const [tcp, udp] of pairs as [number, number][]) t.equal(tcp, udp, "one number for both protocols");
  t.equal(new Set(pairs.flat()).size, 3);
  const free = [30_000, 30_001, 30_002, 30_003].find((one) => !pairs.flat().includes(one)) ?? 0;
  const named = { type: "NodePort", ports: [{ port: 80, nodePort: pairs[0]?.[0] ?? 0 }] } as const;
  t.match(await rejectionStatus(make(f, "d", named)), {
    code: 422,
    message: /nodePort: .*provided port is already allocated$/,
  });
  const outside = { type: "NodePort", ports: [{ port: 80, nodePort: 80 }] } as const;
  t.match(await rejectionStatus(make(f, "d", outside)), { message: /The range of valid ports is 30000-30003$/ });
  const balancer = await make(f, "e", {
    type: "LoadBalancer",
    externalTrafficPolicy: "Local",
    allocateLoadBalancerNodePorts: false,
  });
  t.match(balancer.spec, { healthCheckNodePort: free });
  t.match(await rejectionStatus(make(f, "g", { type: "NodePort" })), {
    code: 500,
    message: /failed to allocate a nodePort: range is full/,
  });
});

/** The ports whose bits are set in the store. */
async function bitsOf(f: ServicesFixture): Promise<readonly number[]> {
  const stored = await nodePortBitmap(f).read();
  return [...(stored?.bits ?? [])].map((bit) => 30_000 + bit).sort();
}

function nodePortBitmap(f: ServicesFixture): RangeBitmap {
  const names = { name: "servicenodeports", resource: "servicenodeportallocations" };
  return new RangeBitmap({ ...names, range: "30000-30003", size: 4 }, f.registries.deps);
}

t.test("ServiceAllocator allocates no port twice on two servers over one store, nor one of Kubernetes", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/24"]);
  await using others = new Registries(f.registries.scheme, { ...f.registries.deps });
  const services = others.of(serviceKind);
  const random = seededRandom(1);
  const addresses = new ServiceAddresses(others.of(ipAddressKind), others.of(serviceCIDRKind), random);
  const ports = new NodePorts(services, { first: 30_000, last: 30_003 }, random);
  const endpoints = others.of(endpointsKind);
  services.allocator = new ServiceAllocator({ families: ["IPv4"], addresses, ports, endpoints, log: silentLogger });
  const spec = { type: "NodePort", ports: [port] } as const;
  const made = await Promise.all(
    [f.services, services, f.services, services].map((on, i) =>
      create(on, f.scope(), { metadata: { name: `s${i}` }, spec }),
    ),
  );
  const all = [30_000, 30_001, 30_002, 30_003];
  t.same(made.map((one) => one.spec?.ports?.[0]?.nodePort).sort(), all);
  t.same(await bitsOf(f), all);
  const first = made[0]?.spec?.ports?.[0]?.nodePort ?? 0;
  const named = { type: "NodePort", ports: [{ port: 80, nodePort: first }] } as const;
  const again = () => create(services, f.scope(), { metadata: { name: "again" }, spec: named });
  const taken = { code: 422, message: /provided port is already allocated$/ };
  t.match(await rejectionStatus(again()), taken);
  await remove(f.services, f.scope(), "s0");
  const set = (isSet: boolean) =>
    nodePortBitmap(f).update((stored) => {
      const bits = stored!.bits;
      if (isSet) bits.add(first - 30_000);
      else bits.delete(first - 30_000);
      return bits;
    });
  await set(true);
  t.match(await rejectionStatus(again()), taken, "allocated by another server, whose service is not stored yet");
  await set(false);
  t.equal((await again()).spec?.ports?.[0]?.nodePort, first);
});

t.test("ServiceAllocator keeps the bits of node ports equal to those of the services", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/24"]);
  const at = (nodePort: number) => ({ type: "NodePort", ports: [{ port: 80, nodePort }] }) as const;
  const made = await make(f, "a", at(30_001));
  t.same(await bitsOf(f), [30_001]);
  const moved = await change(f, made, at(30_002));
  t.same(await bitsOf(f), [30_002], "of a changed port");
  const hidden = await change(f, moved, { type: "ClusterIP", ports: [port] });
  t.same(await bitsOf(f), [], "of a changed type");
  await change(f, hidden, at(30_003));
  await remove(f.services, f.scope(), "a");
  t.same(await bitsOf(f), [], "of a deleted service");
  await rejectionStatus(make(f, "b", { ...at(30_001), ports: [{ port: 0, nodePort: 30_001 }] }));
  await make(f, "b", { type: "NodePort" }, true);
  t.same(await bitsOf(f), [], "of a failed write and a dry run");
  await make(f, "c", at(30_000));
  await f.store.delete(
    "/registry/ranges/servicenodeports",
    (await f.store.get("/registry/ranges/servicenodeports"))!.modified,
  );
  t.match(await rejectionStatus(make(f, "d", at(30_000))), { code: 422 }, "services count without the bitmap");
  await make(f, "d", at(30_001));
  t.same(await bitsOf(f), [30_000, 30_001]);
});

t.test("NodePorts.repair() sets the bits of services, and clears others found for the third time", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/24"]);
  await make(f, "a", { type: "NodePort", ports: [{ port: 80, nodePort: 30_001 }] });
  await nodePortBitmap(f).update(({ bits } = { bits: nodePortBitmap(f).empty(), isCurrent: true }) => {
    bits.delete(1);
    bits.add(2);
    return bits;
  });
  const repair = () => f.ports.repair(f.scope(""), silentLogger);
  t.same(await repair(), { released: 0, allocated: 1 });
  t.same(await bitsOf(f), [30_001, 30_002]);
  t.same(await repair(), { released: 0, allocated: 0 });
  t.same(await repair(), { released: 1, allocated: 0 });
  t.same(await bitsOf(f), [30_001]);
});

t.test("ServiceAllocator releases addresses of a changed type once the service is stored", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/24"], 30_000);
  const made = await make(f, "a", { type: "NodePort" });
  t.match(await rejectionStatus(change(f, made, { type: "ExternalName" })), { code: 422 }, "needs a name");
  t.same(await f.taken(), [made.spec?.clusterIP], "still taken");
  const named = await change(f, made, { type: "ExternalName", externalName: "a.example.com" });
  t.match(named.spec, { clusterIP: undefined, clusterIPs: undefined, ports: [{ nodePort: undefined }] });
  t.same(await f.taken(), []);
  t.equal((await make(f, "b", { type: "NodePort" })).spec?.ports?.[0]?.nodePort, 30_000);
  const back = await change(f, named, { type: "ClusterIP" });
  t.ok((await f.taken()).includes(back.spec?.clusterIP ?? ""));
});

t.test("ServiceAllocator changes services to dual-stack and back", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/24", "fd00::/112"]);
  const single = await make(f, "a", {});
  t.same(single.spec?.ipFamilies, ["IPv4"]);
  const dual = await change(f, single, { ipFamilyPolicy: "PreferDualStack" });
  t.match(dual.spec, { ipFamilies: ["IPv4", "IPv6"], clusterIPs: [single.spec?.clusterIP, /^fd00::/] });
  t.equal((await f.taken()).length, 2);
  const reduced = change(f, dual, { clusterIPs: (dual.spec?.clusterIPs ?? []).slice(0, 1) });
  t.match(await rejectionStatus(reduced), { message: /must be 'SingleStack' to release the secondary cluster IP/ });
  const back = await change(f, dual, { ipFamilyPolicy: "SingleStack" });
  t.same(back.spec?.clusterIPs, single.spec?.clusterIPs);
  t.same(await f.taken(), single.spec?.clusterIPs);
  t.match((await make(f, "b", { ipFamilyPolicy: "RequireDualStack", ipFamilies: ["IPv6"] })).spec, {
    ipFamilies: ["IPv6", "IPv4"],
    clusterIP: /^fd00::/,
  });
});

t.test("ServiceAllocator allocates nothing for services without cluster IP", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/24"]);
  t.match((await make(f, "a", { clusterIP: "None", selector: { app: "a" } })).spec, {
    clusterIPs: ["None"],
    ipFamilies: ["IPv4"],
    ipFamilyPolicy: "SingleStack",
  });
  // Endpoints of a service without selector may have families that the cluster does not have.
  t.match((await make(f, "b", { clusterIP: "None" })).spec, {
    ipFamilies: ["IPv4", "IPv6"],
    ipFamilyPolicy: "RequireDualStack",
  });
  t.same(await f.taken(), []);
});

t.test("ServiceAllocator keeps values that an update omits", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/24"]);
  const ports = [{ name: "a", port: 80 }];
  const made = await make(f, "a", { type: "LoadBalancer", externalTrafficPolicy: "Local", ports });
  const sent: Service = {
    metadata: { name: "a" },
    spec: { type: "LoadBalancer", externalTrafficPolicy: "Local", ports, externalIPs: ["203.0.113.1"] },
  };
  const { object } = await update(f.services, f.scope(), "a", sent);
  t.same(object.spec, { ...made.spec, externalIPs: ["203.0.113.1"] });
});

t.test("ServiceAllocator allocates from all ServiceCIDRs, the oldest first", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/30"]);
  const blocks = f.registries.of(serviceCIDRKind);
  await Promise.all(["a", "b"].map(async (name) => await make(f, name, {})));
  t.match(await rejectionStatus(make(f, "c", {})), { code: 500 });
  await create(blocks, f.scope(""), { metadata: { name: "more" }, spec: { cidrs: ["10.1.0.0/30", "fd00::/112"] } });
  t.match((await make(f, "c", {})).spec, { clusterIP: /^10\.1\.0\.[12]$/, ipFamilies: ["IPv4"] });
  t.match(await rejectionStatus(make(f, "d", { ipFamilies: ["IPv6"] })), { message: /not configured on this cluster/ });
  const { object: more } = await get(blocks, f.scope(""), "more");
  const waiting = [
    { type: "Ready", status: "False", reason: "Waiting", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" },
  ];
  const part = serviceCIDRKind.subresources[0]?.strategy;
  await update(
    blocks,
    f.scope(""),
    "more",
    { ...more, status: { conditions: waiting } },
    { subresourceStrategy: part },
  );
  t.match(await rejectionStatus(make(f, "d", {})), { code: 500 }, "a ServiceCIDR that is not ready is not used");
  const status = { conditions: waiting.map((one) => ({ ...one, status: "True" })) };
  const metadata = { name: "last", finalizers: ["example.com/keep"] };
  await create(blocks, f.scope(""), { metadata, spec: { cidrs: ["10.2.0.0/30"] } });
  const { object: last } = await get(blocks, f.scope(""), "last");
  await update(blocks, f.scope(""), "last", { ...last, status }, { subresourceStrategy: part });
  t.match((await make(f, "d", {})).spec, { clusterIP: /^10\.2\./ });
  await remove(blocks, f.scope(""), "last");
  t.match(await rejectionStatus(make(f, "e", {})), { code: 500 }, "nor is one that is terminating");
});

t.test("ServiceAllocator deletes the endpoints of a deleted service", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/24"]);
  const endpoints = f.registries.of(endpointsKind);
  const subsets = [{ addresses: [{ ip: "10.9.0.1" }], ports: [{ port: 80 }] }];
  for (const name of ["a", "b"]) await create(endpoints, f.scope(), { metadata: { name }, subsets });
  await make(f, "a", {});
  await remove(f.services, f.scope(), "a");
  t.match(await rejectionStatus(get(endpoints, f.scope(), "a")), { code: 404 });
  t.equal((await get(endpoints, f.scope(), "b")).object.metadata?.name, "b");
});
