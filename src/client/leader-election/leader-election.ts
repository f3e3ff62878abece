/**
 * Leader election by a Lease, with client-go's protocol: of several instances of a program, one holds the lease and
 * renews it; the others take it when it was not renewed for its duration, by their own clocks.
 */
import { leaseKind } from "../../api/coordination/lease/kind.ts";
import type { Lease, LeaseSpec } from "../../api/coordination/lease/schema.ts";
import { StatusError } from "../../api/status.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { formatMicroTime } from "../../schema/value/time.ts";
import { type RandomSource, randomUuid } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Client } from "../client.ts";
import type { EventRecorder } from "../events/event-recorder.ts";

export interface LeaderElectionOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Records who leads, if given. */
  readonly recorder?: Pick<EventRecorder, "record"> | undefined;
  readonly namespace: string;
  /** The name of the lease. */
  readonly name: string;
  /** Unique among all instances; see `createIdentity`. */
  readonly identity: string;
  /** How long others wait for a renewal. */
  readonly leaseDurationMs: number;
  /** How long the leader tries to renew before it gives up. Less than the lease's duration. */
  readonly renewDeadlineMs: number;
  /** The interval of reads and renewals. */
  readonly retryPeriodMs: number;
  /** Called with the identity of each new leader, this instance included. */
  readonly onNewLeader?: ((identity: string) => void) | undefined;
}

export interface LeaderElection {
  readonly isLeader: boolean;
  /**
   * Resolves when this instance has become the leader, with a signal that aborts when it is no longer. Rejects with
   * the reason of the options' signal when that aborts first.
   */
  readonly elected: Promise<AbortSignal>;
  /** Throws if this instance leads and has not renewed the lease within its duration and the tolerance. */
  checkLease(toleranceMs: number): void;
  /** Gives the lease up, so that another instance can take it at once. Call when the leader's work has ended. */
  release(): Promise<void>;
}

/** The retry period is extended by up to this factor, so that instances do not compete at the same time. */
const JITTER_FACTOR = 1.2;

/** The host name and a random part, since instances of one host are different ones. */
export function createIdentity(host: string, random: RandomSource): string {
  return `${host}_${randomUuid(random)}`;
}

/** Tries to become the leader until the signal aborts; once lost, leadership is not acquired again. */
export function startLeaderElection(options: LeaderElectionOptions, signal: AbortSignal): LeaderElection {
  const elector = new LeaderElector(options, signal);
  elector.start();
  return elector;
}

class LeaderElector implements LeaderElection {
  readonly elected: Promise<AbortSignal>;
  readonly #options: LeaderElectionOptions;
  readonly #signal: AbortSignal;
  readonly #lost = new AbortController();
  readonly #resolve: (signal: AbortSignal) => void;
  readonly #reject: (reason: unknown) => void;
  /** The last state of the lease that was read or written, and when that state was first seen. */
  #observed: Lease | undefined;
  #observedAt = 0;
  #leader = "";
  #running: Promise<void> = Promise.resolve();

  constructor(options: LeaderElectionOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    const { promise, resolve, reject } = Promise.withResolvers<AbortSignal>();
    this.elected = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    // The rejection is handled even if no caller waits.
    promise.catch(() => {});
  }

  get isLeader(): boolean {
    return this.#observed?.spec?.holderIdentity === this.#options.identity && !this.#lost.signal.aborted;
  }

  start(): void {
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    const { log, name, namespace } = this.#options;
    try {
      log.info("Attempting to acquire leader lease", { lease: `${namespace}/${name}` });
      await this.#acquire();
    } catch (error) {
      this.#reject(error);
      return;
    }
    log.info("Successfully acquired lease", { lease: `${namespace}/${name}` });
    this.#record("became leader");
    this.#resolve(AbortSignal.any([this.#lost.signal, this.#signal]));
    await this.#renewUntilLost();
  }

  async #acquire(): Promise<void> {
    const { clock, random, retryPeriodMs } = this.#options;
    while (!(await this.#tryAcquireOrRenew(this.#signal))) {
      await clock.sleep(retryPeriodMs * (1 + random.fraction() * JITTER_FACTOR), this.#signal);
    }
  }

  async #renewUntilLost(): Promise<void> {
    const { clock, log, name, namespace, renewDeadlineMs, retryPeriodMs } = this.#options;
    for (;;) {
      const renewed = await this.#renew(renewDeadlineMs);
      if (this.#signal.aborted) return;
      if (!renewed) break;
      try {
        await clock.sleep(retryPeriodMs, this.#signal);
      } catch {
        return;
      }
    }
    log.warn("Failed to renew lease", { lease: `${namespace}/${name}`, deadlineMs: renewDeadlineMs });
    this.#record("stopped leading");
    this.#lost.abort(new Error(`lost the leader lease ${namespace}/${name}`));
  }

  /** Tries until the deadline, at which a request in progress is aborted. */
  async #renew(deadlineMs: number): Promise<boolean> {
    const { clock, retryPeriodMs } = this.#options;
    const deadline = new AbortController();
    const timer = clock.timer(deadlineMs, () => deadline.abort(new Error("the renew deadline has passed")));
    const until = AbortSignal.any([deadline.signal, this.#signal]);
    try {
      while (!until.aborted) {
        if (await this.#tryAcquireOrRenew(until)) return true;
        await clock.sleep(retryPeriodMs, until).catch(() => undefined);
      }
      return false;
    } finally {
      timer.cancel();
    }
  }

  /** Whether this instance holds the lease afterwards. Rejects only if the program stops. */
  async #tryAcquireOrRenew(signal: AbortSignal): Promise<boolean> {
    const { client, clock, log, name, namespace, identity } = this.#options;
    try {
      const isHeld = this.#observed?.spec?.holderIdentity === identity && this.#isValid();
      const found = isHeld ? this.#observed : await this.#read(signal);
      if (found === undefined) {
        const created = { metadata: { name, namespace }, spec: this.#nextSpec(undefined) };
        this.#observe(await client.create(leaseKind, created, signal));
        return true;
      }
      this.#observe(found);
      const { holderIdentity = "" } = found.spec ?? {};
      if (holderIdentity !== "" && holderIdentity !== identity && this.#isValid()) return false;
      this.#observe(await client.update(leaseKind, { ...found, spec: this.#nextSpec(found.spec) }, signal));
      return true;
    } catch (error) {
      if (this.#signal.aborted) throw this.#signal.reason;
      // The next attempt reads the lease again.
      if (error instanceof StatusError && this.#observed?.spec?.holderIdentity === identity)
        await this.#refresh(signal);
      log.v(2)?.info("Failed to acquire or renew lease", {
        lease: `${namespace}/${name}`,
        error: String(error),
        at: clock.now(),
      });
      return false;
    }
  }

  async #read(signal: AbortSignal): Promise<Lease | undefined> {
    const { client, name, namespace } = this.#options;
    try {
      return await client.get(leaseKind, { name, namespace }, signal);
    } catch (error) {
      if (error instanceof StatusError && error.status.code === 404) return undefined;
      throw error;
    }
  }

  async #refresh(signal: AbortSignal): Promise<void> {
    const found = await this.#read(signal).catch(() => null);
    if (found === null) return;
    if (found === undefined) this.#observed = undefined;
    else this.#observe(found);
  }

  /** Whether the lease was renewed within its duration, by the time at which the change was seen here. */
  #isValid(): boolean {
    const { leaseDurationSeconds } = this.#observed?.spec ?? {};
    const durationMs = leaseDurationSeconds === undefined ? this.#options.leaseDurationMs : leaseDurationSeconds * 1000;
    return this.#options.clock.monotonic() < this.#observedAt + durationMs;
  }

  #observe(lease: Lease): void {
    if (!deepEqual(this.#observed?.spec, lease.spec)) this.#observedAt = this.#options.clock.monotonic();
    this.#observed = lease;
    const { holderIdentity = "" } = lease.spec ?? {};
    if (holderIdentity === "" || holderIdentity === this.#leader) return;
    this.#leader = holderIdentity;
    this.#options.onNewLeader?.(holderIdentity);
  }

  #nextSpec(previous: LeaseSpec | undefined): LeaseSpec {
    const { clock, identity, leaseDurationMs } = this.#options;
    const now = formatMicroTime(clock.now());
    const isRenewal = previous?.holderIdentity === identity;
    const transitions = previous?.leaseTransitions ?? 0;
    return {
      ...previous,
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
      acquireTime: isRenewal ? (previous.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: previous === undefined || isRenewal ? transitions : transitions + 1,
    };
  }

  #record(what: string): void {
    const { recorder, identity, name, namespace } = this.#options;
    const { uid, resourceVersion } = this.#observed?.metadata ?? {};
    const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", name, namespace, uid, resourceVersion };
    recorder?.record(lease, "Normal", "LeaderElection", `${identity} ${what}`);
  }

  checkLease(toleranceMs: number): void {
    const { clock, identity, name, leaseDurationMs } = this.#options;
    if (this.#observed?.spec?.holderIdentity !== identity) return;
    if (clock.monotonic() <= this.#observedAt + leaseDurationMs + toleranceMs) return;
    throw new Error(`failed election to renew leadership on lease ${name}`);
  }

  async release(): Promise<void> {
    const { client, clock, log, identity, name, namespace } = this.#options;
    await this.#running;
    const lease = this.#observed;
    if (lease?.spec?.holderIdentity !== identity || this.#lost.signal.aborted) return;
    const now = formatMicroTime(clock.now());
    const spec = { ...lease.spec, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: now, renewTime: now };
    try {
      await client.update(leaseKind, { ...lease, spec });
      this.#observed = undefined;
    } catch (error) {
      // Others take the lease at the end of its duration.
      log.warn("Failed to release lease", { lease: `${namespace}/${name}`, error: String(error) });
    }
  }
}
