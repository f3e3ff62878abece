import t from "tap";
import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import { ipAddressKind } from "../../api/networking/ip-address/kind.ts";
import { serviceCIDRKind } from "../../api/networking/service-cidr/kind.ts";
import { create } from "../../registry/create.ts";
import { get } from "../../registry/get.ts";
import { ServiceAddresses } from "../../registry/service-allocation/addresses.ts";
import { silentLogger } from "../../std/log/logger.ts";
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

async function start(f: Fixture, changes: Partial<typeof config> = {}): Promise<void> {
  const deps = { registries: f.registries, log: silentLogger, signal };
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
