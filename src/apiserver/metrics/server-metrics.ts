/** All metrics of an API server. */
import type { Scheme } from "../../api/scheme.ts";
import { loadMetricPolicy } from "../../component/metric-policy.ts";
import { registerBuildMetrics, registerRegistryMetrics } from "../../flags/build-metrics.ts";
import { registerHealthMetrics } from "../../http/health-metrics.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Logger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { registerProcessMetrics } from "../../std/metrics/process-metrics.ts";
import { createQueueMetrics, type QueueMetrics } from "../../std/metrics/queue-metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import { versionInfo } from "../../std/version-info.ts";
import { MeasuredStore } from "../../storage/measured-store.ts";
import type { Store } from "../../storage/store.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { RequestMetrics } from "./request-metrics.ts";
import { createKeyToResource, type StorageMetrics, startStorageMetrics } from "./storage-metrics.ts";

/** Created before the parts that it measures, and disposed after them. */
export class ServerMetrics implements AsyncDisposable {
  readonly registry: MetricRegistry;
  /** Metrics of health checks only, which `/metrics/slis` serves for frequent scrapes. */
  readonly slis: MetricRegistry;
  readonly requests: RequestMetrics;
  readonly queues: (name: string) => QueueMetrics;
  readonly observeHealth: (endpoint: string, check: string, ok: boolean) => void;
  readonly #config: ApiServerConfig;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #process: Disposable;
  #scheme: Scheme | undefined;
  #storage: StorageMetrics | undefined;

  /** Rejects with one sentence when a file of the flags is invalid. */
  static async create(config: ApiServerConfig, clock: Clock, log: Logger): Promise<ServerMetrics> {
    const policy = await loadMetricPolicy(config.observability.metrics);
    return new ServerMetrics(config, clock, log, new MetricRegistry(policy), new MetricRegistry(policy));
  }

  private constructor(
    config: ApiServerConfig,
    clock: Clock,
    log: Logger,
    registry: MetricRegistry,
    slis: MetricRegistry,
  ) {
    this.#config = config;
    this.#clock = clock;
    this.#log = log;
    this.registry = registry;
    this.slis = slis;
    this.requests = new RequestMetrics(registry, () => this.#scheme);
    this.queues = createQueueMetrics(registry);
    this.observeHealth = registerHealthMetrics(slis);
    this.#process = registerProcessMetrics(registry);
    registerBuildMetrics(
      registry,
      versionInfo(config.gitVersion, config.apis.emulatedVersion),
      config.observability.features,
    );
  }

  measureStore(store: Store): Store {
    const resourceOf = createKeyToResource(this.#config.storage.prefix, () => this.#scheme);
    return new MeasuredStore(store, this.registry, this.#clock, resourceOf);
  }

  /** Sets the scheme whose kinds are label values of requests. */
  setScheme(registries: Registries): void {
    this.#scheme = registries.scheme;
  }

  /** Starts to count stored objects. Warns about unknown metric names in the flags. */
  startStorageMetrics(registries: Registries, store: Store): void {
    const { registry } = this;
    const { observability: observe } = this.#config;
    this.#storage = startStorageMetrics({
      registry,
      registries,
      clock: this.#clock,
      log: this.#log,
      store,
      countPollMs: observe.countPollMs,
      sizePollMs: observe.sizePollMs,
    });
    registerRegistryMetrics(registry);
    const named = [...registry.policy.disabled, ...[...registry.policy.allowedValues.keys()].map(metricName)];
    for (const name of new Set(named)) {
      if (!registry.has(name) && !this.slis.has(name)) {
        this.#log.warn("Unknown metric name", { metric: name });
      }
    }
  }

  /** Stored objects of `deployments.apps` at the last count; -1 when counting failed. */
  objectCount(resource: string): number | undefined {
    return this.#storage?.objectCount(resource);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#storage?.[Symbol.dispose]();
    this.#process[Symbol.dispose]();
  }
}

function metricName(key: string): string {
  return key.slice(0, key.indexOf(","));
}
