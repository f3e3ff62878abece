/** Kubernetes' metrics of the allocators of cluster IPs and node ports. */
import type { Service } from "../../api/core/service/schema.ts";
import { isHeadless, specOf } from "../../api/core/service/types.ts";
import type { Registry } from "../../registry/registry.ts";
import {
  AddressUnavailable,
  type ClusterIpAllocator,
  usableRange,
} from "../../registry/service-allocation/addresses.ts";
import type { NodePorts, PortObserver, PortScope } from "../../registry/service-allocation/node-ports.ts";
import type { CounterFamily, GaugeFamily, HistogramFamily, MetricRegistry } from "../../std/metrics/metrics.ts";
import { type Cidr, contains, formatCidr, type IpFamily, parseIp } from "../../std/net/ip.ts";
import type { Clock } from "../../std/time/clock.ts";

const IPS = "kube_apiserver_clusterip_allocator";
const PORTS = "kube_apiserver_nodeport_allocator";
const stability = "ALPHA";
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export interface AllocationMetricsDeps {
  readonly registry: MetricRegistry;
  readonly clock: Clock;
  readonly services: Registry<Service>;
  /** The ranges that addresses come from. */
  readonly cidrs: () => readonly Cidr[];
}

export class AllocationMetrics implements PortObserver {
  readonly #deps: AllocationMetricsDeps;
  readonly #ips: CounterFamily;
  readonly #ipErrors: CounterFamily;
  readonly #ipSeconds: HistogramFamily;
  readonly #ports: CounterFamily;
  readonly #portErrors: CounterFamily;

  constructor(deps: AllocationMetricsDeps) {
    const { registry } = deps;
    this.#deps = deps;
    const byRange = { stability, labels: ["cidr", "scope"] } as const;
    const byScope = { stability, labels: ["scope"] } as const;
    this.#ips = registry.counter({
      name: `${IPS}_allocation_total`,
      help: "Number of Cluster IPs allocations",
      ...byRange,
    });
    this.#ipErrors = registry.counter({
      name: `${IPS}_allocation_errors_total`,
      help: "Number of errors trying to allocate Cluster IPs",
      ...byRange,
    });
    this.#ipSeconds = registry.histogram(
      {
        name: `${IPS}_allocation_duration_seconds`,
        help: "Duration in seconds to allocate a Cluster IP by ServiceCIDR",
        stability,
        labels: ["cidr"],
      },
      SECONDS,
    );
    this.#ports = registry.counter({
      name: `${PORTS}_allocation_total`,
      help: "Number of NodePort allocations",
      ...byScope,
    });
    this.#portErrors = registry.counter({
      name: `${PORTS}_allocation_errors_total`,
      help: "Number of errors trying to allocate NodePort",
      ...byScope,
    });
  }

  /** The same allocator, measured. */
  measure(allocator: ClusterIpAllocator): ClusterIpAllocator {
    return {
      allocate: (scope, service, text, dryRun) =>
        this.#measure("static", parseIp(text)?.family, dryRun, () => allocator.allocate(scope, service, text, dryRun)),
      allocateNext: (scope, service, family, dryRun) =>
        this.#measure("dynamic", family, dryRun, () => allocator.allocateNext(scope, service, family, dryRun)),
      release: (scope, service, text) => allocator.release(scope, service, text),
    };
  }

  countPort(scope: PortScope): void {
    this.#ports.with(scope).inc();
  }

  countPortError(scope: PortScope): void {
    this.#portErrors.with(scope).inc();
  }

  /** Shows how many addresses and ports are in use: in one thread of the process, since all have the same services. */
  showUsage(ports: NodePorts): void {
    const { registry, services } = this.#deps;
    const cidr = { stability, labels: ["cidr"] } as const;
    const allocated = registry.gauge({
      name: `${IPS}_allocated_ips`,
      help: "Gauge measuring the number of allocated IPs for Services",
      ...cidr,
    });
    const available = registry.gauge({
      name: `${IPS}_available_ips`,
      help: "Gauge measuring the number of available IPs for Services",
      ...cidr,
    });
    const usedPorts = registry.gauge({
      name: `${PORTS}_allocated_ports`,
      help: "Gauge measuring the number of allocated NodePorts for Services",
      stability,
    });
    const freePorts = registry.gauge({
      name: `${PORTS}_available_ports`,
      help: "Gauge measuring the number of available NodePorts for Services",
      stability,
    });
    registry.onCollect(() => {
      const objects = services.cache.list(services.objects.prefix()).items.map(({ object }) => object);
      this.#showAddresses(objects, allocated, available);
      const { used, size } = ports.usage(objects);
      usedPorts.with().set(used);
      freePorts.with().set(size - used);
    });
  }

  #showAddresses(objects: readonly Service[], allocated: GaugeFamily, available: GaugeFamily): void {
    const cidrs = this.#deps.cidrs();
    const counts = cidrs.map(() => 0);
    for (const object of objects) {
      const spec = specOf(object);
      if (isHeadless(spec)) continue;
      for (const text of spec.clusterIPs ?? []) {
        const ip = parseIp(text);
        const index = ip === undefined ? -1 : cidrs.findIndex((cidr) => contains(cidr, ip));
        if (index >= 0) counts[index]!++;
      }
    }
    for (const [index, cidr] of cidrs.entries()) {
      const { first, last } = usableRange(cidr);
      allocated.with(formatCidr(cidr)).set(counts[index]!);
      available.with(formatCidr(cidr)).set(Number(last - first) + 1 - counts[index]!);
    }
  }

  async #measure(
    scope: PortScope,
    family: IpFamily | undefined,
    dryRun: boolean,
    allocate: () => Promise<string>,
  ): Promise<string> {
    if (dryRun) return await allocate();
    const { clock } = this.#deps;
    const began = clock.monotonic();
    try {
      const address = await allocate();
      const cidr = this.#cidrOf(address);
      this.#ips.with(cidr, scope).inc();
      this.#ipSeconds.with(cidr).observe((clock.monotonic() - began) / 1000);
      return address;
    } catch (error) {
      const cidr = this.#deps.cidrs().find((each) => each.family === family);
      if (error instanceof AddressUnavailable && cidr !== undefined) this.#ipErrors.with(formatCidr(cidr), scope).inc();
      throw error;
    }
  }

  #cidrOf(address: string): string {
    const ip = parseIp(address);
    const cidr = ip && this.#deps.cidrs().find((each) => contains(each, ip));
    return cidr === undefined ? "" : formatCidr(cidr);
  }
}
