/** Metrics of the store and the watch caches. */
import type { Kind } from "../../api/kind.ts";
import { isPersisted } from "../../api/review-kind.ts";
import { kubernetesGroup, type Scheme } from "../../api/scheme.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Registry } from "../../registry/registry.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import type { Store } from "../../storage/store.ts";

export interface StorageMetricsOptions {
  readonly registry: MetricRegistry;
  readonly registries: Registries;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: Pick<Store, "status">;
  /** The interval of object counts; 0: never. */
  readonly countPollMs: number;
  /** The interval of size measurements; 0: never. */
  readonly sizePollMs: number;
}

/** The label value of the only storage cluster. */
const CLUSTER = "storage-cluster-0";

/** Disposing stops the polling. */
export interface StorageMetrics extends Disposable {
  /** Objects at the last count; undefined before it and for unknown resources, -1 when counting failed. */
  objectCount(resource: string): number | undefined;
}

export function startStorageMetrics(options: StorageMetricsOptions): StorageMetrics {
  registerCacheMetrics(options.registry, options.registries);
  let counts: ReadonlyMap<string, number> = new Map();
  const onCounted = (counted: ReadonlyMap<string, number>): void => {
    counts = counted;
  };
  const polls = [pollCounts(options, onCounted), pollSize(options)];
  return {
    objectCount: (resource) => counts.get(resource),
    [Symbol.dispose]() {
      for (const poll of polls) poll.stop();
    },
  };
}

/** A resource's label value: `deployments.apps`, `pods`. */
export function resourceName({ plural, group }: Pick<Kind, "plural" | "group">): string {
  return group === "" ? plural : `${plural}.${kubernetesGroup(group)}`;
}

/** Maps a store key to its resource; `other` for keys of no kind. */
export function createKeyToResource(prefix: string, currentScheme: () => Scheme | undefined): (key: string) => string {
  let names = new Map<string, string>();
  let changes = -1;
  const start = prefix.length + 1;
  return (key) => {
    const scheme = currentScheme();
    if (scheme !== undefined && scheme.changeCount !== changes) {
      names = new Map([...storedKinds(scheme)].map(([name, kind]) => [name, resourceName(kind)]));
      changes = scheme.changeCount;
    }
    const first = key.indexOf("/", start);
    const second = key.indexOf("/", first + 1);
    // A storage name is one segment, or two: `pods`, `services/specs`.
    const long = second < 0 ? undefined : names.get(key.slice(start, second));
    return long ?? names.get(key.slice(start, first < 0 ? key.length : first)) ?? "other";
  };
}

/** One kind for each storage name: versions of a resource, and events of both groups, share one. */
function storedKinds(scheme: Scheme): ReadonlyMap<string, Kind> {
  const kinds = new Map<string, Kind>();
  for (const kind of scheme.kinds()) {
    if (isPersisted(kind) && !kinds.has(kind.storageName)) kinds.set(kind.storageName, kind);
  }
  return kinds;
}

function pollCounts(
  { registry, registries, clock, log, countPollMs }: StorageMetricsOptions,
  onCounted: (counts: ReadonlyMap<string, number>) => void,
): Poller {
  const objects = registry.gauge({
    name: "apiserver_storage_objects",
    help:
      "Number of stored objects at the time of last check split by kind. In case of a fetching " +
      "error, the value will be -1.",
    stability: "STABLE",
    labels: ["resource"],
  });
  return new Poller(clock, log, countPollMs, async () => {
    const found = new Map<string, number>();
    for (const kind of storedKinds(registries.scheme).values()) {
      found.set(resourceName(kind), await countObjects(registries.of(kind)));
    }
    objects.clear();
    for (const [name, count] of found) objects.with(name).set(count);
    onCounted(found);
  });
}

async function countObjects(registry: Registry): Promise<number> {
  const { cacheInUse, objects } = registry;
  if (cacheInUse !== undefined) return cacheInUse.size;
  try {
    const { items, remaining } = await objects.list(objects.prefix(), { limit: 1 });
    return items.length + remaining;
  } catch {
    return -1;
  }
}

function pollSize({ registry, clock, log, store, sizePollMs }: StorageMetricsOptions): Poller {
  const size = registry.gauge({
    name: "apiserver_storage_size_bytes",
    help: "Size of the storage database file physically allocated in bytes.",
    stability: "STABLE",
    labels: ["storage_cluster_id"],
  });
  return new Poller(clock, log, sizePollMs, async () => {
    const status = store.status?.();
    if (status !== undefined) size.with(CLUSTER).set(status.sizeBytes);
  });
}

/** Runs a function now and at an interval, never concurrently. */
class Poller {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #everyMs: number;
  readonly #work: () => Promise<void>;
  #timer: Timer | undefined;
  #stopped = false;

  /** 0 milliseconds: never. */
  constructor(clock: Clock, log: Logger, everyMs: number, work: () => Promise<void>) {
    this.#clock = clock;
    this.#log = log;
    this.#everyMs = everyMs;
    this.#work = work;
    if (everyMs > 0) void this.#run();
  }

  /** Does not wait for a run in progress: an unresponsive store must not delay the shutdown. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  async #run(): Promise<void> {
    try {
      await this.#work();
    } catch (error) {
      if (!this.#stopped) this.#log.error("Cannot measure the store", error);
    }
    if (this.#stopped) return;
    this.#timer = this.#clock.timer(this.#everyMs, () => void this.#run());
  }
}

/** Reads the counters of the watch caches at each scrape. */
function registerCacheMetrics(registry: MetricRegistry, registries: Registries): void {
  const stability = "ALPHA" as const;
  const labels = ["resource"];
  const counter = (name: string, help: string, each = labels) =>
    registry.counter({ name, help, stability, labels: each });
  const events = counter("apiserver_storage_events_received_total", "Number of etcd events received split by kind.");
  const consistent = counter(
    "apiserver_watch_cache_consistent_read_total",
    "Counter for consistent reads from cache.",
    ["fallback", "resource", "success"],
  );
  const received = counter(
    "apiserver_watch_cache_events_received_total",
    "Counter of events received in watch cache broken by resource type.",
  );
  const dispatched = counter(
    "apiserver_watch_cache_events_dispatched_total",
    "Counter of events dispatched in watch cache broken by resource type.",
  );
  const starts = counter(
    "apiserver_watch_cache_initializations_total",
    "Counter of watch cache initializations broken by resource type.",
  );
  const initial = counter(
    "apiserver_init_events_total",
    "Counter of init events processed in watch cache broken by resource type.",
  );
  const overflowed = counter(
    "apiserver_terminated_watchers_total",
    "Counter of watchers closed due to unresponsiveness broken by resource type.",
  );
  const shown = registry.gauge({
    name: "apiserver_watch_cache_resource_version",
    help: "Current resource version of watch cache broken by resource type.",
    stability,
    labels,
  });
  const listLabels = ["resource_prefix", "index"];
  const list = (name: string, help: string, each = listLabels) =>
    registry.counter({ name: `apiserver_cache_list_${name}`, help, stability, labels: each });
  const lists = list("total", "Number of LIST requests served from watch cache");
  const fetched = list(
    "fetched_objects_total",
    "Number of objects read from watch cache in the course of serving a LIST request",
  );
  const returned = list(
    "returned_objects_total",
    "Number of objects returned for a LIST request from watch cache",
    listLabels.slice(0, 1),
  );
  registry.onCollect(() => {
    for (const { kind, cacheInUse } of registries.all()) {
      if (cacheInUse === undefined) continue;
      const resource = resourceName(kind);
      const { counts } = cacheInUse;
      received.with(resource).value = counts.received;
      events.with(resource).value = counts.received;
      const { succeeded, failed } = counts.consistentLists;
      // A list that read the store instead is not counted.
      if (succeeded > 0) consistent.with("false", resource, "true").value = succeeded;
      if (failed > 0) consistent.with("false", resource, "false").value = failed;
      dispatched.with(resource).value = counts.received;
      starts.with(resource).value = counts.initializations;
      initial.with(resource).value = counts.initialEvents;
      overflowed.with(resource).value = counts.overflowedWatches;
      shown.with(resource).set(cacheInUse.revision());
      const prefix = `/${kind.storageName}`;
      let sum = 0;
      for (const [index, found] of counts.lists) {
        // Kubernetes' name of an index on a field.
        const name = index === "" ? "" : `f:${index}`;
        lists.with(prefix, name).value = found.lists;
        fetched.with(prefix, name).value = found.fetched;
        sum += found.returned;
      }
      if (counts.lists.size > 0) returned.with(prefix).value = sum;
    }
  });
}
