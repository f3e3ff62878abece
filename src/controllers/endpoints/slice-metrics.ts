/** The metrics of the controllers that write EndpointSlices, with Kubernetes' names. */
import type { Service } from "../../api/core/service/schema.ts";
import type { EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";
import { DEFAULT_BUCKETS, exponentialBuckets } from "../../std/metrics/buckets.ts";
import { type HistogramFamily, MetricRegistry } from "../../std/metrics/metrics.ts";
import { endpointKey, isSameEndpoint, portsKey } from "./slice-draft.ts";

const HINTS = ["service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"];
const stability = "ALPHA";

export interface WrittenSlices {
  readonly create: readonly EndpointSlice[];
  readonly update: readonly EndpointSlice[];
  readonly delete: readonly EndpointSlice[];
}

interface SliceCounts {
  readonly slices: number;
  readonly desired: number;
  readonly endpoints: number;
}

/** What both controllers count. */
class SliceMetrics {
  readonly #subsystem: string;
  readonly #registry: MetricRegistry;
  readonly #max: number;
  /** By service. */
  readonly #counts = new Map<string, SliceCounts>();
  readonly #changes: (operation: string, count: number) => void;
  readonly #added: HistogramFamily;
  readonly #removed: HistogramFamily;

  /** `max` endpoints fit into a slice. */
  constructor(subsystem: string, registry: MetricRegistry, max: number) {
    this.#subsystem = subsystem;
    this.#registry = registry;
    this.#max = max;
    const changes = this.counter("changes", "Writes of EndpointSlices.", ["operation"]);
    this.#changes = (operation, count) => void (count > 0 && changes.with(operation).inc(count));
    this.#added = this.endpointHistogram("endpoints_added_per_sync", "Endpoints that a sync adds.");
    this.#removed = this.endpointHistogram("endpoints_removed_per_sync", "Endpoints that a sync removes.");
    const gauges = [
      [this.gauge("num_endpoint_slices", "EndpointSlices that exist."), "slices"],
      [this.gauge("desired_endpoint_slices", "EndpointSlices if all of them were full."), "desired"],
      [this.gauge("endpoints_desired", "Endpoints of all services."), "endpoints"],
    ] as const;
    registry.onCollect(() => {
      for (const [gauge, count] of gauges) {
        gauge.with().set([...this.#counts.values()].reduce((sum, counts) => sum + counts[count], 0));
      }
    });
  }

  counter(name: string, help: string, labels: readonly string[] = []) {
    return this.#registry.counter({ name: `${this.#subsystem}_${name}`, help, stability, labels });
  }

  gauge(name: string, help: string, labels: readonly string[] = []) {
    return this.#registry.gauge({ name: `${this.#subsystem}_${name}`, help, stability, labels });
  }

  histogram(name: string, help: string, bounds: readonly number[], labels: readonly string[] = []): HistogramFamily {
    return this.#registry.histogram({ name: `${this.#subsystem}_${name}`, help, stability, labels }, bounds);
  }

  endpointHistogram(name: string, help: string): HistogramFamily {
    return this.histogram(name, help, exponentialBuckets(2, 2, 15));
  }

  /** `before` are the slices of the service that existed. */
  recordWrites(key: string, before: readonly EndpointSlice[], written: WrittenSlices): void {
    for (const operation of ["create", "update", "delete"] as const) {
      this.#changes(operation, written[operation].length);
    }
    const { added, removed } = compareEndpoints(before, written);
    this.#added.with().observe(added);
    this.#removed.with().observe(removed);
    const changed = new Set([...written.update, ...written.delete].map(({ metadata }) => metadata?.name));
    const kept = before.filter(({ metadata }) => !changed.has(metadata?.name));
    this.#counts.set(key, countSlices([...kept, ...written.update, ...written.create], this.#max));
  }

  deleteService(key: string): void {
    this.#counts.delete(key);
  }
}

export class EndpointSliceMetrics extends SliceMetrics {
  /** Services by their traffic distribution. */
  readonly #distributions = new Map<string, string>();
  readonly #syncs = this.counter("syncs", "Syncs of EndpointSlices by result: success, stale, error.", ["result"]);
  readonly #changed = this.histogram(
    "endpointslices_changed_per_sync",
    "EndpointSlices that a sync changes.",
    DEFAULT_BUCKETS,
    ["topology", "traffic_distribution"],
  );

  constructor(max: number, registry = new MetricRegistry()) {
    super("endpoint_slice_controller", registry, max);
    const help = "Services with a traffic distribution.";
    const gauge = this.gauge("services_count_by_traffic_distribution", help, ["traffic_distribution"]);
    registry.onCollect(() => {
      gauge.reset();
      for (const distribution of this.#distributions.values()) gauge.with(distribution).inc();
    });
  }

  recordSync(result: "success" | "stale" | "error"): void {
    this.#syncs.with(result).inc();
  }

  recordServiceWrites(key: string, service: Service, before: readonly EndpointSlice[], written: WrittenSlices): void {
    this.recordWrites(key, before, written);
    const hasHints = HINTS.some((name) => /^auto$/i.test(service.metadata?.annotations?.[name] ?? ""));
    const distribution = service.spec?.trafficDistribution;
    if (distribution === undefined) this.#distributions.delete(key);
    else this.#distributions.set(key, distribution);
    const count = written.create.length + written.update.length + written.delete.length;
    this.#changed.with(hasHints ? "Auto" : "Disabled", hasHints ? "" : (distribution ?? "")).observe(count);
  }

  override deleteService(key: string): void {
    super.deleteService(key);
    this.#distributions.delete(key);
  }
}

export class MirroringMetrics extends SliceMetrics {
  readonly #updated = this.endpointHistogram("endpoints_updated_per_sync", "Endpoints that a sync changes.");
  readonly #skipped = this.endpointHistogram("addresses_skipped_per_sync", "Addresses that a sync does not mirror.");
  readonly #seconds = this.histogram(
    "endpoints_sync_duration",
    "Seconds that syncs of Endpoints take.",
    exponentialBuckets(0.001, 2, 15),
  );

  constructor(max: number, registry = new MetricRegistry()) {
    super("endpoint_slice_mirroring_controller", registry, max);
  }

  recordSync(seconds: number): void {
    this.#seconds.with().observe(seconds);
  }

  recordEndpointsWrites(key: string, before: readonly EndpointSlice[], written: WrittenSlices, skipped: number): void {
    this.recordWrites(key, before, written);
    this.#updated.with().observe(compareEndpoints(before, written).updated);
    this.#skipped.with().observe(skipped);
  }
}

function compareEndpoints(before: readonly EndpointSlice[], { create, update, delete: deleted }: WrittenSlices) {
  const names = new Set([...update, ...deleted].map(({ metadata }) => metadata?.name));
  const old = new Map(
    before
      .filter(({ metadata }) => names.has(metadata?.name))
      .flatMap(({ endpoints }) => endpoints.map((endpoint) => [endpointKey(endpoint), endpoint])),
  );
  const next = [...create, ...update].flatMap(({ endpoints }) => endpoints);
  let added = 0;
  let updated = 0;
  for (const endpoint of next) {
    const known = old.get(endpointKey(endpoint));
    if (known === undefined) added++;
    else if (!isSameEndpoint(known, endpoint)) updated++;
    old.delete(endpointKey(endpoint));
  }
  return { added, updated, removed: old.size };
}

function countSlices(slices: readonly EndpointSlice[], max: number): SliceCounts {
  const groups = Map.groupBy(slices, ({ addressType, ports }) => `${addressType} ${portsKey(ports, false)}`);
  const sizes = [...groups.values()].map((group) => group.reduce((sum, { endpoints }) => sum + endpoints.length, 0));
  return {
    slices: slices.length,
    desired: sizes.reduce((sum, size) => sum + Math.max(1, Math.ceil(size / max)), 0),
    endpoints: sizes.reduce((sum, size) => sum + size, 0),
  };
}
