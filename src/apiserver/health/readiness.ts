/** What the health endpoints look at. */
import type { Registries } from "../../registry/registries.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { withTimeout } from "../../std/time/with-timeout.ts";
import { prefixRange, type Store } from "../../storage/store.ts";
import type { HealthCheck, HealthEndpoint } from "./health.ts";
import { type StartHookOptions, type StartStep, startHooks } from "./post-start-hooks.ts";

export interface ReadinessLimits {
  readonly clock: Clock;
  /** How long the store may take to answer where liveness is asked for. */
  readonly healthTimeoutMs: number;
  /** The same where readiness is. */
  readonly readyTimeoutMs: number;
  readonly hooks: StartHookOptions;
  /** How long after the start `/livez` takes what is not finished for finished. */
  readonly livezGraceMs: number;
  /** Hears what came of each check that somebody asked for. */
  readonly observe?: (endpoint: string, check: string, ok: boolean) => void;
}

export class Readiness {
  readonly log: Logger;
  readonly #store: Store;
  readonly #registries: Registries;
  readonly #limits: ReadinessLimits;
  readonly #hooks: ReturnType<typeof startHooks>;
  readonly #done = new Set<StartStep>();
  readonly #graceEnds: number;
  #state: "starting" | "started" | "stopping" = "starting";

  constructor(store: Store, registries: Registries, log: Logger, limits: ReadinessLimits) {
    this.#store = store;
    this.#limits = limits;
    this.#registries = registries;
    this.log = log;
    this.#hooks = startHooks(limits.hooks);
    this.#graceEnds = limits.clock.monotonic() + limits.livezGraceMs;
  }

  get hasStarted(): boolean {
    return this.#state !== "starting";
  }

  started(): void {
    this.#state = "started";
  }

  stopping(): void {
    this.#state = "stopping";
  }

  /** A step of the start is over: the checks that wait for it succeed from now on. */
  done(step: StartStep): void {
    this.#done.add(step);
  }

  endpoints(): readonly HealthEndpoint[] {
    const first: readonly HealthCheck[] = [
      { name: "ping", check: () => {} },
      { name: "log", check: () => {} },
    ];
    const hooks = this.#hooks.map(({ name, step }): HealthCheck => ({ name, check: () => this.#checkDone(step) }));
    const patient = hooks.map(({ name, check }): HealthCheck => ({ name, check: () => this.#afterGrace(check) }));
    const store: HealthCheck = { name: "etcd", alias: "kvstore", check: () => this.storeAnswers() };
    const ready: readonly HealthCheck[] = [
      ...first,
      { name: "informer-sync", check: () => this.#checkInformers() },
      ...hooks,
      { name: "shutdown", check: () => this.#checkRunning() },
    ];
    const endpoint = (name: string, checks: readonly HealthCheck[]): HealthEndpoint => {
      return { name, checks, observe: (check, ok) => this.#limits.observe?.(name, check, ok) };
    };
    return [
      endpoint("healthz", [...first, store, ...hooks]),
      endpoint("livez", [...first, store, ...patient]),
      endpoint("readyz", ready),
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

  /** Reads are answered from caches, which are worth as much as the store that they follow. */
  async #checkInformers(): Promise<void> {
    await this.#registries.ready();
    await this.#askStore(this.#limits.readyTimeoutMs);
  }

  #checkDone(step: StartStep): void {
    if (!this.#done.has(step)) throw new Error("not finished");
  }

  #afterGrace(check: HealthCheck["check"]): void | Promise<void> {
    if (this.#limits.clock.monotonic() >= this.#graceEnds) return check();
  }

  #checkRunning(): void {
    if (this.#state === "stopping") throw new Error("the process is shutting down");
  }
}
