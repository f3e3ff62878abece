/** Metrics of encryption at rest, with Kubernetes' names. */
import { createHash } from "node:crypto";
import { exponentialBuckets } from "../../std/metrics/buckets.ts";
import type { Family, MetricRegistry, Series } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";

export type TransformationType = "from_storage" | "to_storage";

/** Records the transformations of one resource's values. */
export interface ObserveTransformation {
  /** In milliseconds, for `end`. */
  start(): number;
  end(type: TransformationType, prefix: string, began: number, error?: unknown): void;
}

/** Key IDs of which there are series. */
const KEY_IDS_MAX = 100;
const ENVELOPE = "apiserver_envelope_encryption";
const RELOAD = "apiserver_encryption_config_controller";
const STORAGE = "apiserver_storage";

export class EncryptionMetrics {
  readonly #clock: Clock;
  readonly #server: string;
  readonly #families: ReturnType<typeof createFamilies>;
  readonly #usedKeys = new RecentLabels(KEY_IDS_MAX);
  readonly #statusKeys = new RecentLabels(KEY_IDS_MAX);
  readonly #arrivals: Partial<Record<TransformationType, number>> = {};

  /** `server`: the hash that identifies this server in metrics. */
  constructor(registry: MetricRegistry, clock: Clock, server: string) {
    this.#clock = clock;
    this.#server = server;
    this.#families = createFamilies(registry);
  }

  /** `resource`: `deployments.apps`. */
  observeResource(resource: string): ObserveTransformation {
    const { durations, operations } = this.#families;
    return {
      start: () => this.#clock.monotonic(),
      end: (type, prefix, began, error) => {
        operations.with(resource, type, prefix, statusOf(error)).inc();
        if (error !== undefined) return;
        durations.with(type, prefix).observe((this.#clock.monotonic() - began) / 1000);
      },
    };
  }

  recordCacheMiss(): void {
    this.#families.cacheMisses.inc();
  }

  recordDataKey(milliseconds: number): void {
    this.#families.dataKeys.observe(milliseconds / 1000);
  }

  /** `method`: `/v2.KeyManagementService/Encrypt`; `error` undefined for success. */
  recordCall(provider: string, method: string, milliseconds: number, error: unknown): void {
    this.#families.calls.with(provider, method, statusOf(error)).observe(milliseconds / 1000);
  }

  recordKeyId(type: TransformationType, provider: string, keyId: string): void {
    const { keyIds, keyIdTimes } = this.#families;
    const labels = [type, provider, hashOf(keyId), this.#server];
    this.#usedKeys.touch(labels, [keyIds, keyIdTimes]);
    keyIds.with(...labels).inc();
    keyIdTimes.with(...labels).set(this.#seconds());
  }

  recordStatusKeyId(provider: string, keyId: string): void {
    const { statusKeyTimes } = this.#families;
    const labels = [provider, hashOf(keyId), this.#server];
    this.#statusKeys.touch(labels, [statusKeyTimes]);
    statusKeyTimes.with(...labels).set(this.#seconds());
  }

  recordInvalidKeyId(provider: string, code: string): void {
    this.#families.invalidKeyIds.with(provider, code).inc();
  }

  recordDataKeySources(provider: string, count: number): void {
    this.#families.sources.with(provider).set(count);
  }

  recordCacheFill(fraction: number): void {
    this.#families.cacheFill.set(fraction);
  }

  /** A value of KMS v1 is to be read or written. */
  recordArrival(type: TransformationType): void {
    const now = this.#clock.monotonic();
    const last = this.#arrivals[type] ?? now;
    this.#arrivals[type] = now;
    this.#families.arrivals.with(type).observe((now - last) / 1000);
  }

  recordReload(status: "success" | "failure"): void {
    const { reloads, reloadTimes, reloadSuccesses, reloadFailures } = this.#families;
    reloads.with(status, this.#server).inc();
    (status === "success" ? reloadSuccesses : reloadFailures).with(this.#server).inc();
    reloadTimes.with(status, this.#server).set(this.#seconds());
  }

  #seconds(): number {
    return this.#clock.now() / 1000;
  }
}

/** The label sets that were used last; the series of older ones are removed. */
class RecentLabels {
  readonly #max: number;
  readonly #labels = new Map<string, readonly string[]>();

  constructor(max: number) {
    this.#max = max;
  }

  touch(labels: readonly string[], families: readonly Pick<Family<Series>, "removeWhere">[]): void {
    const key = labels.join("\xff");
    this.#labels.delete(key);
    this.#labels.set(key, labels);
    if (this.#labels.size <= this.#max) return;
    const [oldest] = this.#labels;
    if (oldest === undefined) return;
    this.#labels.delete(oldest[0]);
    for (const family of families) family.removeWhere((values) => values.join("\xff") === oldest[0]);
  }
}

function hashOf(keyId: string): string {
  return keyId === "" ? "" : `sha256:${createHash("sha256").update(keyId).digest("hex")}`;
}

/** The status of a failed call of a plugin, also of one that another error wraps. */
function statusOf(error: unknown): string {
  if (error === undefined) return "OK";
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause.name === "GrpcError" && "code" in cause) return String(cause.code);
  }
  return "unknown-non-grpc";
}

function createFamilies(registry: MetricRegistry) {
  const stability = "ALPHA" as const;
  const options = (name: string, help: string, labels: readonly string[] = []) => ({ name, help, stability, labels });
  const reloadLabels = ["apiserver_id_hash"];
  return {
    durations: registry.histogram(
      options(
        `${STORAGE}_transformation_duration_seconds`,
        "Duration of transformations of stored values in seconds.",
        ["transformation_type", "transformer_prefix"],
      ),
      exponentialBuckets(5e-6, 2, 25),
    ),
    operations: registry.counter(
      options(
        `${STORAGE}_transformation_operations_total`,
        "Number of transformations of stored values; the status is OK, or what failed.",
        ["resource", "transformation_type", "transformer_prefix", "status"],
      ),
    ),
    cacheMisses: registry
      .counter(
        options(
          `${STORAGE}_envelope_transformation_cache_misses_total`,
          "Number of values whose data key a plugin had to decrypt.",
        ),
      )
      .with(),
    dataKeys: registry
      .histogram(
        options(`${STORAGE}_data_key_generation_duration_seconds`, "Duration of generating a data key in seconds."),
        exponentialBuckets(5e-6, 2, 14),
      )
      .with(),
    dataKeyFailures: registry
      .counter(
        options(`${STORAGE}_data_key_generation_failures_total`, "Number of data keys that could not be generated."),
      )
      .with(),
    cacheFill: registry
      .gauge(options(`${ENVELOPE}_dek_cache_fill_percent`, "Part of the cache of data keys that is in use."))
      .with(),
    arrivals: registry.histogram(
      options(`${ENVELOPE}_dek_cache_inter_arrival_time_seconds`, "Time between two transformations in seconds.", [
        "transformation_type",
      ]),
      exponentialBuckets(60, 2, 10),
    ),
    sources: registry.gauge(
      options(`${ENVELOPE}_dek_source_cache_size`, "Number of cached sources of data keys.", ["provider_name"]),
    ),
    keyIds: registry.counter(
      options(`${ENVELOPE}_key_id_hash_total`, "Number of uses of a key ID.", [
        "transformation_type",
        "provider_name",
        "key_id_hash",
        "apiserver_id_hash",
      ]),
    ),
    keyIdTimes: registry.gauge(
      options(`${ENVELOPE}_key_id_hash_last_timestamp_seconds`, "Time of the last use of a key ID in seconds.", [
        "transformation_type",
        "provider_name",
        "key_id_hash",
        "apiserver_id_hash",
      ]),
    ),
    statusKeyTimes: registry.gauge(
      options(
        `${ENVELOPE}_key_id_hash_status_last_timestamp_seconds`,
        "Time of the last status with a key ID in seconds.",
        ["provider_name", "key_id_hash", "apiserver_id_hash"],
      ),
    ),
    invalidKeyIds: registry.counter(
      options(`${ENVELOPE}_invalid_key_id_from_status_total`, "Number of invalid key IDs in the status of a plugin.", [
        "provider_name",
        "error",
      ]),
    ),
    calls: registry.histogram(
      options(`${ENVELOPE}_kms_operations_latency_seconds`, "Duration of calls of plugins in seconds.", [
        "provider_name",
        "method_name",
        "grpc_status_code",
      ]),
      exponentialBuckets(0.0001, 2, 20),
    ),
    reloads: registry.counter(
      options(`${RELOAD}_automatic_reloads_total`, "Number of reloads of the encryption configuration.", [
        "status",
        ...reloadLabels,
      ]),
    ),
    reloadTimes: registry.gauge(
      options(
        `${RELOAD}_automatic_reload_last_timestamp_seconds`,
        "Time of the last reload of the encryption configuration in seconds.",
        ["status", ...reloadLabels],
      ),
    ),
    reloadSuccesses: registry.counter({
      ...options(
        `${RELOAD}_automatic_reload_success_total`,
        "Number of successful reloads of the encryption configuration.",
        reloadLabels,
      ),
      deprecatedSince: "1.30.0",
    }),
    reloadFailures: registry.counter({
      ...options(
        `${RELOAD}_automatic_reload_failures_total`,
        "Number of failed reloads of the encryption configuration.",
        reloadLabels,
      ),
      deprecatedSince: "1.30.0",
    }),
  };
}
