/** What the health endpoints look at. */
import type { Registries } from "../registry/registries.ts";
import type { Logger } from "../std/log.ts";
import { prefixRange, type Store } from "../storage/store.ts";
import type { HealthCheck, HealthEndpoint } from "./health.ts";

export class Readiness {
  readonly log: Logger;
  readonly #store: Store;
  readonly #registries: Registries;
  #state: "starting" | "started" | "stopping" = "starting";

  constructor(store: Store, registries: Registries, log: Logger) {
    this.#store = store;
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
      { name: "kvstore", check: () => this.#askStore() },
    ];
    const ready: readonly HealthCheck[] = [
      ...alive,
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
    return await this.#askStore().then(
      () => true,
      () => false,
    );
  }

  async #askStore(): Promise<void> {
    await this.#store.list(prefixRange("/health/"), { limit: 1 });
  }

  #checkRunning(): void {
    if (this.#state === "stopping") throw new Error("the process is shutting down");
  }
}
