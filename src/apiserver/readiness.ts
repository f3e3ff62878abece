/** What the health endpoints look at. */
import type { Registries } from "../registry/registries.ts";
import type { Clock } from "../std/clock.ts";
import type { Logger } from "../std/log.ts";
import { withTimeout } from "../std/with-timeout.ts";
import { prefixRange, type Store } from "../storage/store.ts";
import type { HealthCheck, HealthEndpoint } from "./health.ts";

export interface ReadinessLimits {
  readonly clock: Clock;
  /** How long the store may take to answer where liveness is asked for. */
  readonly healthTimeoutMs: number;
  /** The same where readiness is. */
  readonly readyTimeoutMs: number;
}

export class Readiness {
  readonly log: Logger;
  readonly #store: Store;
  readonly #registries: Registries;
  readonly #limits: ReadinessLimits;
  #state: "starting" | "started" | "stopping" = "starting";

  constructor(store: Store, registries: Registries, log: Logger, limits: ReadinessLimits) {
    this.#store = store;
    this.#limits = limits;
    this.#registries = registries;
    this.log = log;
  }

  started(): void {
    this.#state = "started";
  }

  stopping(): void {
    this.#state = "stopping";
  }

  endpoints(): readonly HealthEndpoint[] {
    const alive: readonly HealthCheck[] = [
      { name: "ping", check: () => {} },
      { name: "log", check: () => {} },
      { name: "kvstore", check: () => this.storeAnswers() },
    ];
    const ready: readonly HealthCheck[] = [
      ...alive.filter(({ name }) => name !== "kvstore"),
      { name: "kvstore", check: () => this.#askStore(this.#limits.readyTimeoutMs) },
      { name: "informer-sync", check: () => this.#registries.ready() },
      { name: "shutdown", check: () => this.#checkRunning() },
    ];
    return [
      { name: "healthz", checks: alive },
      { name: "livez", checks: alive },
      { name: "readyz", checks: ready },
    ];
  }

  /** Whether the process can still do its work: what the service manager's watchdog asks. */
  async alive(): Promise<boolean> {
    return await this.storeAnswers().then(
      () => true,
      () => false,
    );
  }

  /** Rejects when the store does not answer in time. */
  async storeAnswers(): Promise<void> {
    await this.#askStore(this.#limits.healthTimeoutMs);
  }

  async #askStore(timeoutMs: number): Promise<void> {
    const answer = this.#store.list(prefixRange("/health/"), { limit: 1 });
    await withTimeout(this.#limits.clock, timeoutMs, answer, "the store does not answer");
  }

  #checkRunning(): void {
    if (this.#state === "stopping") throw new Error("the process is shutting down");
  }
}
