/** All that an API server measures, put together. */
import type { Scheme } from "../../api/scheme.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Logger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { type QueueMetrics, createQueueMetrics } from "../../std/metrics/queue-metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import { MeasuredStore } from "../../storage/measured-store.ts";
import type { Store } from "../../storage/store.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { versionInfo } from "../discovery/version.ts";
import { buildMetrics, registryMetrics } from "./build-metrics.ts";
import { healthMetrics } from "./health-metrics.ts";
import { metricPolicy } from "./metric-policy.ts";
import { processMetrics } from "./process-metrics.ts";
import { RequestMetrics } from "./request-metrics.ts";
import { keyResources, storageMetrics } from "./storage-metrics.ts";

/** Made before anything that is measured; disposed after it. */
export class ServerMetrics implements AsyncDisposable {
  readonly registry: MetricRegistry;
  /** Of health checks alone: asked for more often, by those who want little else. */
  readonly slis: MetricRegistry;
  readonly requests: RequestMetrics;
  readonly queues: (name: string) => QueueMetrics;
  readonly observeHealth: (endpoint: string, check: string, ok: boolean) => void;
  readonly #config: ApiServerConfig;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #process: Disposable;
  #scheme: Scheme | undefined;
  #storage: Disposable | undefined;

  /** Fails with one sentence when the operator's files cannot be used. */
  static async create(config: ApiServerConfig, clock: Clock, log: Logger): Promise<ServerMetrics> {
    const policy = await metricPolicy(config.observability.metrics);
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
    this.observeHealth = healthMetrics(slis);
    this.#process = processMetrics(registry);
    buildMetrics(registry, versionInfo(config.gitVersion, config.apis.emulatedVersion), config.observability.features);
  }

  measured(store: Store): Store {
    const resourceOf = keyResources(this.#config.storage.prefix, () => this.#scheme);
    return new MeasuredStore(store, this.registry, this.#clock, resourceOf);
  }

  /** From now on requests are told apart by what is served. */
  serve(registries: Registries): void {
    this.#scheme = registries.scheme;
  }

  /** The store answers: what is in it can be counted. Warns of metrics that the operator names and nobody knows. */
  started(registries: Registries): void {
    const { registry } = this;
    const { observability: observe, storage } = this.#config;
    this.#storage = storageMetrics({
      registry,
      registries,
      clock: this.#clock,
      log: this.#log,
      url: storage.url,
      countPollMs: observe.countPollMs,
      sizePollMs: observe.sizePollMs,
    });
    registryMetrics(registry);
    const named = [...registry.policy.disabled, ...[...registry.policy.allowedValues.keys()].map(metricOf)];
    for (const name of new Set(named)) {
      if (!registry.has(name) && !this.slis.has(name)) {
        this.#log.warn("There is no metric of this name", { metric: name });
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#storage?.[Symbol.dispose]();
    this.#process[Symbol.dispose]();
  }
}

function metricOf(key: string): string {
  return key.slice(0, key.indexOf(","));
}
