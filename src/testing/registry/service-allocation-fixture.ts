/** Registries whose services get cluster IPs of the given CIDRs, and node ports of a small range. */
import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { Service } from "../../api/core/service/schema.ts";
import { ipAddressKind } from "../../api/networking/ip-address/kind.ts";
import { serviceCIDRKind } from "../../api/networking/service-cidr/kind.ts";
import { create } from "../../registry/create.ts";
import type { Registry } from "../../registry/registry.ts";
import { ServiceAddresses } from "../../registry/service-allocation/addresses.ts";
import { ServiceAllocator } from "../../registry/service-allocation/allocator.ts";
import type { ClusterFamilies } from "../../registry/service-allocation/families.ts";
import { NodePorts } from "../../registry/service-allocation/node-ports.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { type Fixture, fixture } from "./registry-fixture.ts";

export interface ServicesFixture extends Fixture {
  readonly services: Registry<Service>;
  readonly addresses: ServiceAddresses;
  readonly ports: NodePorts;
  /** Names of the IPAddress objects. */
  taken(): Promise<readonly string[]>;
}

export async function servicesFixture(cidrs: readonly string[], last = 30_003): Promise<ServicesFixture> {
  const base = fixture();
  const { registries, scope } = base;
  const services = registries.of(serviceKind);
  const { random } = registries.deps;
  const addresses = new ServiceAddresses(registries.of(ipAddressKind), registries.of(serviceCIDRKind), random);
  const ports = new NodePorts(services, { first: 30_000, last }, random);
  const endpoints = registries.of(endpointsKind);
  const families = cidrs.map((cidr) => (cidr.includes(":") ? "IPv6" : "IPv4")) as unknown as ClusterFamilies;
  services.allocator = new ServiceAllocator({ families, addresses, ports, endpoints, log: silentLogger });
  await create(registries.of(serviceCIDRKind), scope(""), { metadata: { name: "kubernetes" }, spec: { cidrs } });
  const taken = async (): Promise<readonly string[]> => {
    const registry = registries.of(ipAddressKind);
    const cache = await registry.freshCache(scope(""));
    return cache.list(registry.objects.prefix()).items.map(({ object }) => object.metadata?.name ?? "");
  };
  return { ...base, services, addresses, ports, taken };
}
