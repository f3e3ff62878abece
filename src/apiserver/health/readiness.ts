/** The checks of the health endpoints and the state that they read. */

import type { HealthCheck, HealthEndpoint } from "../../http/health.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { withTimeout } from "../../std/time/with-timeout.ts";
import { prefixRange, type Store } from "../../storage/store.ts";
import { type PostStartHookOptions, postStartHooks, type StartupStep } from "./post-start-hooks.ts";

export interface ReadinessLimits {
  readonly clock: Clock;
  /** Timeout of the store for `/healthz` and `/livez`. */
  readonly healthTimeoutMs: number;
  /** Timeout of the store for `/readyz`. */
  readonly readyTimeoutMs: number;
  readonly hooks: PostStartHookOptions;
  /** The checks of KMS plugins; none when absent. */
  readonly kmsChecks?: readonly HealthCheck[] | undefined;
  /** How long after the start `/livez` ignores unfinished post-start hooks. */
  readonly livezGraceMs: number;
  /** Called with the result of each requested check. */
  readonly observe?: (endpoint: string, check: string, ok: boolean) => void;
}

export class Readiness {
  readonly log: Logger;
  readonly #store: Store;
  readonly #registries: Registries;
  readonly #limits: ReadinessLimits;
  readonly #hooks: ReturnType<typeof postStartHooks>;
  readonly #done = new Set<StartupStep>();
  readonly #graceEnds: number;
  #state: "starting" | "started" | "stopping" = "starting";
  /** Whether `/readyz` fails until `markThreadsServing`. */
  #waitsForThreads = false;

  constructor(store: Store, registries: Registries, log: Logger, limits: ReadinessLimits) {
    this.#store = store;
    this.#limits = limits;
    this.#registries = registries;
    this.log = log;
    this.#hooks = postStartHooks(limits.hooks);
    this.#graceEnds = limits.clock.monotonic() + limits.livezGraceMs;
  }

  get hasStarted(): boolean {
    return this.#state !== "starting";
  }

  markStarted(): void {
    this.#state = "started";
  }

  /** Requests may arrive in other threads, which do not serve yet. */
  waitForThreads(): void {
    this.#waitsForThreads = true;
  }

  markThreadsServing(): void {
    this.#waitsForThreads = false;
  }

  markStopping(): void {
    this.#state = "stopping";
  }

  /** Marks a step of the start as done: its checks succeed from now on. */
  markDone(step: StartupStep): void {
    this.#done.add(step);
  }

  endpoints(): readonly HealthEndpoint[] {
    const base: readonly HealthCheck[] = [
      { name: "ping", check: () => {} },
      { name: "log", check: () => {} },
    ];
    const hooks = this.#hooks.map(({ name, step }): HealthCheck => ({ name, check: () => this.#checkStep(step) }));
    const livezHooks = hooks.map(
      ({ name, check }): HealthCheck => ({ name, check: () => this.#checkAfterGrace(check) }),
    );
    const store: HealthCheck = { name: "etcd", alias: "kvstore", check: () => this.probeStore() };
    const kms = this.#limits.kmsChecks ?? [];
    const ready: readonly HealthCheck[] = [
      ...base,
      ...kms,
      { name: "informer-sync", check: () => this.#checkInformers() },
      { name: "kvstore-alarms", showReason: true, hideSuccess: true, check: () => this.#checkAlarms() },
      ...hooks,
      { name: "serving", hideSuccess: true, check: () => this.#checkServing() },
      { name: "shutdown", check: () => this.#checkNotStopping() },
    ];
    const endpoint = (name: string, checks: readonly HealthCheck[]): HealthEndpoint => {
      return { name, checks, observe: (check, ok) => this.#limits.observe?.(name, check, ok) };
    };
    return [
      endpoint("healthz", [...base, store, ...kms, ...hooks]),
      endpoint("livez", [...base, store, ...kms, ...livezHooks]),
      endpoint("readyz", ready),
    ];
  }

  /** Whether the store answers, for the watchdog of the service manager. */
  async isAlive(): Promise<boolean> {
    return await this.probeStore().then(
      () => true,
      () => false,
    );
  }

  /** Rejects when the store does not answer in time. */
  async probeStore(): Promise<void> {
    await this.#probeStore(this.#limits.healthTimeoutMs);
  }

  /** A damaged store fails the check of its alarms only: a restart would lose what the caches serve. */
  async #probeStore(timeoutMs: number): Promise<void> {
    if (this.#store.status?.()?.alarms.some(({ type }) => type === "CORRUPT") === true) return;
    const listing = this.#store.list(prefixRange("/health/"), { limit: 1 });
    await withTimeout(this.#limits.clock, timeoutMs, listing, "the store does not answer");
  }

  /** Reads are served from caches, which depend on the store. */
  async #checkInformers(): Promise<void> {
    const { clock, readyTimeoutMs } = this.#limits;
    await withTimeout(clock, readyTimeoutMs, this.#registries.ready(), "the caches do not have their objects");
    await this.#probeStore(this.#limits.readyTimeoutMs);
  }

  #checkAlarms(): void {
    const alarms = this.#store.status?.()?.alarms ?? [];
    if (alarms.length > 0) throw new Error(alarms.map(({ type, message }) => `${type}: ${message}`).join("; "));
  }

  #checkStep(step: StartupStep): void {
    if (!this.#done.has(step)) throw new Error("not finished");
  }

  #checkAfterGrace(check: HealthCheck["check"]): void | Promise<void> {
    if (this.#limits.clock.monotonic() >= this.#graceEnds) return check();
  }

  #checkServing(): void {
    if (this.#state === "starting" || this.#waitsForThreads) throw new Error("some requests are rejected still");
  }

  #checkNotStopping(): void {
    if (this.#state === "stopping") throw new Error("the process is shutting down");
  }
}
