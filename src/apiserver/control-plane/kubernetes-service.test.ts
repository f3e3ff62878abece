import t from "tap";
import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import { ipAddressKind } from "../../api/networking/ip-address/kind.ts";
import { serviceCIDRKind } from "../../api/networking/service-cidr/kind.ts";
import { create } from "../../registry/create.ts";
import { get } from "../../registry/get.ts";
import { ServiceAddresses } from "../../registry/service-allocation/addresses.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { StoreError } from "../../storage/store.ts";
import { type Fixture, fixture } from "../../testing/registry/registry-fixture.ts";
import { startServiceAllocation } from "./kubernetes-service.ts";

const config = {
  clusterIpRanges: ["10.0.0.0/24"],
  nodePorts: { first: 30_000, last: 30_100 },
  kubernetesServiceNodePort: 0,
  securePort: 6443,
  serviceNames: ["kubernetes"],
};
const signal = new AbortController().signal;

async function start(f: Fixture, changes: Partial<typeof config> = {}, metrics = new MetricRegistry()): Promise<void> {
  const deps = { registries: f.registries, log: silentLogger, metrics, signal };
  await (await startServiceAllocation({ ...config, ...changes }, deps)).repaired;
}

t.test(
  "startServiceAllocation() creates the ServiceCIDR of the flag, and the kubernetes service with its first address",
  async (t) => {
    await using f = fixture();
    await start(f);
    const { object: block } = await get(f.registries.of(serviceCIDRKind), f.scope(""), "kubernetes");
    t.match(block, { spec: { cidrs: ["10.0.0.0/24"] }, status: { conditions: [{ type: "Ready", status: "True" }] } });
    const { object: own } = await get(f.registries.of(serviceKind), f.scope(), "kubernetes");
    t.match(own.spec, { clusterIP: "10.0.0.1", ports: [{ name: "https", port: 443, targetPort: 6443 }] });
    const { object: address } = await get(f.registries.of(ipAddressKind), f.scope(""), "10.0.0.1");
    t.match(address.spec?.parentRef, { resource: "services", namespace: "default", name: "kubernetes" });
  },
);

t.test("startServiceAllocation() applies changed flags at the next start", async (t) => {
  await using f = fixture();
  await start(f);
  await start(f, {
    kubernetesServiceNodePort: 30_050,
    securePort: 7443,
    clusterIpRanges: ["10.0.0.0/24", "fd00::/112"],
  });
  const { object: own } = await get(f.registries.of(serviceKind), f.scope(), "kubernetes");
  t.match(own.spec, { type: "NodePort", clusterIP: "10.0.0.1", ports: [{ nodePort: 30_050, targetPort: 7443 }] });
  const { object: block } = await get(f.registries.of(serviceCIDRKind), f.scope(""), "kubernetes");
  t.same(block.spec?.cidrs, ["10.0.0.0/24", "fd00::/112"]);
  await start(f, { kubernetesServiceNodePort: 0 });
  const { object: back } = await get(f.registries.of(serviceKind), f.scope(), "kubernetes");
  t.equal(back.spec?.type, "ClusterIP");
  t.equal(back.spec?.ports?.[0]?.nodePort, undefined);
});

t.test("startServiceAllocation() deletes default/svc of an earlier start, unless a user created it", async (t) => {
  for (const isOurs of [true, false]) {
    await using f = fixture();
    const [services, endpoints] = [f.registries.of(serviceKind), f.registries.of(endpointsKind)];
    await start(f, isOurs ? { serviceNames: ["kubernetes", "svc"] } : {});
    if (!isOurs) await create(services, f.scope(), { metadata: { name: "svc" }, spec: { ports: [{ port: 80 }] } });
    await create(endpoints, f.scope(), { metadata: { name: "svc" } });
    await start(f);
    for (const { objects } of [services, endpoints])
      t.equal((await objects.get(objects.key("default", "svc"))) === undefined, isOurs, objects.kind.kind);
    t.ok(await services.objects.get(services.objects.key("default", "kubernetes")));
  }
});

t.test(
  "startServiceAllocation() repairs addresses after a crash between the writes of address and service",
  async (t) => {
    await using f = fixture();
    await start(f);
    const [services, objects] = [f.registries.of(serviceKind), f.registries.of(ipAddressKind)];
    const addresses = new ServiceAddresses(objects, f.registries.of(serviceCIDRKind), f.registries.deps.random);
    await addresses.allocate(f.scope(), { namespace: "default", name: "never-written" }, "10.0.0.9", false);
    const web = { metadata: { name: "web" }, spec: { clusterIP: "10.0.0.10", ports: [{ port: 80 }] } };
    await create(services, f.scope(), web);
    await addresses.release(f.scope(), { namespace: "default", name: "web" }, "10.0.0.10");
    await create(objects, f.scope(""), {
      metadata: { name: "10.0.0.11" },
      spec: { parentRef: { resource: "widgets", name: "other" } },
    });
    await f.clock.advance(61_000);
    await start(f);
    const held = async (ip: string) =>
      (await objects.objects.get(objects.objects.key(undefined, ip)))?.spec?.parentRef?.name;
    t.equal(await held("10.0.0.9"), undefined, "released");
    t.equal(await held("10.0.0.10"), "web", "reserved");
    t.equal(await held("10.0.0.11"), "other", "addresses of other resources are not changed");
    t.equal(await held("10.0.0.1"), "kubernetes");
  },
);

t.test("startServiceAllocation() rejects ranges without usable addresses", async (t) => {
  for (const range of ["10.0.0.0/32", "x"]) {
    await using f = fixture();
    await t.rejects(start(f, { clusterIpRanges: [range] }), /^Cannot use --service-cluster-ip-range=/, range);
  }
});

t.test("startServiceAllocation() resolves although the store is full, whose objects must be deleted", async (t) => {
  const fail = () => Promise.reject(new StoreError("no-space", "the store is full"));
  await using f = fixture();
  await start(f);
  Object.assign(f.store, { create: fail, update: fail });
  await start(f, { securePort: 7443 });
  const { object: own } = await get(f.registries.of(serviceKind), f.scope(), "kubernetes");
  t.match(own.spec, { ports: [{ targetPort: 6443 }] }, "as it was");
  Object.assign(f.store, { update: () => Promise.reject(new StoreError("unavailable", "it is gone")) });
  await t.rejects(start(f, { securePort: 7443 }), /it is gone/);
});

t.test("startServiceAllocation() shows Kubernetes' metrics of the allocators", async (t) => {
  await using f = fixture();
  const metrics = new MetricRegistry();
  await start(f, {}, metrics);
  const services = f.registries.of(serviceKind);
  const web = (clusterIP: string | undefined, nodePort: number | undefined) => ({
    metadata: { generateName: "web-" },
    spec: { type: "NodePort" as const, clusterIP, ports: [{ port: 80, nodePort }] },
  });
  await create(services, f.scope(), web("10.0.0.9", 30_050));
  await create(services, f.scope(), web(undefined, undefined));
  await t.rejects(create(services, f.scope(), web("10.0.0.9", undefined)));
  await t.rejects(create(services, f.scope(), web(undefined, 30_050)));
  await create(services, f.scope(), web(undefined, undefined), { dryRun: true });
  const shown: Record<string, number> = {};
  for (const family of metrics.collect()) {
    const name = family.options.name.replace(/^kube_apiserver_(.*)_allocator/, "$1");
    for (const series of family.series()) {
      if ("value" in series) shown[[name, ...series.values].join(" ")] = series.value;
    }
  }
  t.same(shown, {
    "clusterip_allocation_total 10.0.0.0/24 static": 2,
    "clusterip_allocation_total 10.0.0.0/24 dynamic": 2,
    "clusterip_allocation_errors_total 10.0.0.0/24 static": 1,
    "clusterip_allocated_ips 10.0.0.0/24": 3,
    "clusterip_available_ips 10.0.0.0/24": 251,
    "nodeport_allocation_total static": 1,
    "nodeport_allocation_total dynamic": 1,
    "nodeport_allocation_errors_total static": 1,
    nodeport_allocated_ports: 2,
    nodeport_available_ports: 99,
  });
});
