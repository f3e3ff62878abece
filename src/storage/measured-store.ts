/** A store that records metrics of the durations and failures of its operations. */

import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { Clock } from "../std/time/clock.ts";
import { addLatency } from "../tracing/span.ts";
import {
  type KeyValue,
  type ListOptions,
  type Page,
  type Range,
  type ReadOptions,
  type Revision,
  type ScanPart,
  type Store,
  StoreError,
  type StoreStatus,
  storeAlarmTypes,
  type WatchBatch,
  type WriteOptions,
} from "./store.ts";

const SECONDS = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60];
const LABELS = ["operation", "type"];

type Operation = "get" | "list" | "create" | "update" | "delete";

/** The metric families of store operations. */
export function createStoreMetrics(registry: MetricRegistry) {
  const stability = "ALPHA" as const;
  const list = (name: string, help: string) =>
    registry.counter({ name: `apiserver_storage_list_${name}`, help, stability, labels: ["resource"] });
  return {
    requests: registry.counter({
      name: "etcd_requests_total",
      help: "Etcd request counts for each operation and object type.",
      stability,
      labels: LABELS,
    }),
    errors: registry.counter({
      name: "etcd_request_errors_total",
      help: "Etcd failed request counts for each operation and object type.",
      stability,
      labels: LABELS,
    }),
    seconds: registry.histogram(
      {
        name: "etcd_request_duration_seconds",
        help: "Etcd request latency in seconds for each operation and object type.",
        stability,
        labels: LABELS,
      },
      SECONDS,
    ),
    written: registry.counter({
      name: "apiserver_storage_written_bytes_total",
      help: "Bytes of the keys and values written to the store, by operation and resource.",
      stability,
      labels: LABELS,
    }),
    lists: list("total", "Number of LIST requests served from storage"),
    fetched: list(
      "fetched_objects_total",
      "Number of objects read from storage in the course of serving a LIST request",
    ),
    evaluated: list(
      "evaluated_objects_total",
      "Number of objects tested in the course of serving a LIST request from storage",
    ),
    returned: list("returned_objects_total", "Number of objects returned for a LIST request from storage"),
  };
}

/** `resourceOf` returns the resource of a key: `deployments.apps`. */
export class MeasuredStore implements Store {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #families: ReturnType<typeof createStoreMetrics>;
  readonly #resourceOf: (key: string) => string;
  readonly readRevision?: () => Promise<Revision>;

  constructor(store: Store, registry: MetricRegistry, clock: Clock, resourceOf: (key: string) => string) {
    this.#store = store;
    if (store.readRevision !== undefined) this.readRevision = store.readRevision.bind(store);
    this.#clock = clock;
    this.#families = createStoreMetrics(registry);
    if (store.status?.() !== undefined) registerStatusMetrics(store, registry);
    this.#resourceOf = resourceOf;
  }

  current(): Revision {
    return this.#store.current();
  }

  get(key: string, options?: ReadOptions): Promise<KeyValue | undefined> {
    return this.#measure("get", key, this.#clock.monotonic(), this.#store.get(key, options));
  }

  list(range: Range, options?: ListOptions): Promise<Page> {
    const page = this.#measure("list", range.from, this.#clock.monotonic(), this.#store.list(range, options));
    page.then(
      ({ items }) => this.#recordList(this.#resourceOf(range.from), items.length),
      () => {},
    );
    return page;
  }

  async *scan(range: Range, options?: ReadOptions): AsyncIterable<ScanPart> {
    const began = this.#clock.monotonic();
    let items = 0;
    try {
      for await (const part of this.#store.scan(range, options)) {
        items += part.items.length;
        yield part;
      }
    } catch (error) {
      this.#record("list", this.#resourceOf(range.from), began, 1);
      throw error;
    }
    const resource = this.#resourceOf(range.from);
    this.#record("list", resource, began, 0);
    this.#recordList(resource, items);
  }

  readVersion(key: string, modified: Revision): Uint8Array | undefined {
    return this.#store.readVersion(key, modified);
  }

  create(key: string, value: Uint8Array, options?: WriteOptions): Promise<Revision> {
    const work = this.#store.create(key, value, options);
    return this.#measure("create", key, this.#clock.monotonic(), work, value.length);
  }

  update(key: string, value: Uint8Array, expected: Revision, options?: WriteOptions): Promise<Revision> {
    const work = this.#store.update(key, value, expected, options);
    return this.#measure("update", key, this.#clock.monotonic(), work, value.length);
  }

  delete(key: string, expected: Revision): Promise<Revision> {
    return this.#measure("delete", key, this.#clock.monotonic(), this.#store.delete(key, expected), 0);
  }

  watch(range: Range, from: Revision, signal: AbortSignal): AsyncIterable<WatchBatch> {
    return this.#store.watch(range, from, signal);
  }

  compact(before: Revision): Promise<void> {
    return this.#store.compact(before);
  }

  status(): StoreStatus | undefined {
    return this.#store.status?.();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#store[Symbol.asyncDispose]());
  }

  /** Returns the store's own promise, so that the caller does not wait for the metrics. */
  #measure<T>(operation: Operation, key: string, began: number, work: Promise<T>, valueBytes?: number): Promise<T> {
    const resource = this.#resourceOf(key);
    work.then(
      () => {
        this.#record(operation, resource, began, 0);
        if (valueBytes !== undefined) this.#families.written.with(operation, resource).inc(key.length + valueBytes);
      },
      (error: unknown) => this.#record(operation, resource, began, isExpected(error) ? 0 : 1),
    );
    return work;
  }

  /** The series are not kept: those of a resource are removed when it is not served any more. */
  #record(operation: Operation, resource: string, began: number, failures: number): void {
    const { requests, errors, seconds } = this.#families;
    requests.with(operation, resource).inc();
    errors.with(operation, resource).inc(failures);
    const milliseconds = this.#clock.monotonic() - began;
    seconds.with(operation, resource).observe(milliseconds / 1000);
    addLatency("store", milliseconds);
  }

  #recordList(resource: string, items: number): void {
    const { lists, fetched, evaluated, returned } = this.#families;
    lists.with(resource).inc();
    fetched.with(resource).inc(items);
    evaluated.with(resource).inc(items);
    returned.with(resource).inc(items);
  }
}

/** The names of etcd's own metrics. */
function registerStatusMetrics(store: Store, registry: MetricRegistry): void {
  const stability = "ALPHA" as const;
  const gauge = (name: string, help: string, labels: readonly string[] = []) =>
    registry.gauge({ name, help, stability, labels });
  const size = gauge("etcd_mvcc_db_total_size_in_bytes", "Size of the store's files in bytes.");
  const quota = gauge("etcd_server_quota_backend_bytes", "Quota of the store in bytes; 0 for none.");
  const alarms = gauge("etcd_server_alarms", "1 for each active alarm of the store, by type.", ["alarm_type"]);
  const log =
    store.status?.()?.log === undefined
      ? undefined
      : {
          bytes: gauge("etcd_disk_wal_write_bytes_total", "Bytes written to the log of the store."),
          syncs: gauge("apiserver_storage_syncs_total", "Batches of writes that were synced to the log of the store."),
        };
  registry.onCollect(() => {
    const status = store.status?.();
    if (status === undefined) return;
    log?.bytes.with().set(status.log?.bytes ?? 0);
    log?.syncs.with().set(status.log?.syncs ?? 0);
    size.with().set(status.sizeBytes);
    quota.with().set(status.quotaBytes ?? 0);
    for (const type of storeAlarmTypes) {
      alarms.with(type).set(status.alarms.some((alarm) => alarm.type === type) ? 1 : 0);
    }
  });
}

/** Whether another write came first, which is not a failure of the store. */
function isExpected(error: unknown): boolean {
  return error instanceof StoreError && (error.code === "exists" || error.code === "conflict");
}
