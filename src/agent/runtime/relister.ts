/**
 * Detects changes in the runtime without a call per pod: lists all sandboxes and containers and compares them with the
 * last listing. Lists in a short period after a change, in a longer one while pods run, and rarely when there are none
 * or when the runtime's events announce changes.
 */

import { formatDuration } from "../../schema/value/time.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Histogram } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import { containerDigest, containerStates, labels, sandboxDigest } from "./observation.ts";
import type { Runtime } from "./runtime.ts";

export interface RelisterOptions {
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Called for each pod that changed, with its digest as in `digestOf`, and the time of the listing's request on the
   * monotonic clock. False: call again after the next listing.
   */
  readonly onChange: (uid: string, digest: string, requestedAt: number) => boolean;
  /** In seconds: of a listing, and between the ends of two. */
  readonly metrics?: { readonly duration: Histogram; readonly interval: Histogram } | undefined;
  readonly signal: AbortSignal;
}

/** A pod in a listing of the runtime; the sources may not have it. */
export interface RuntimePod {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly running: boolean;
  /** As in `digestOf`; differs after any change of the pod. */
  readonly digest: string;
}

/** A pod in the last listing. */
export interface ListedPod {
  /** As in `digestOf`. */
  readonly digest: string;
  /** When the listing was requested, on the monotonic clock. */
  readonly requestedAt: number;
}

const FAST_PERIOD_MS = 100;
const NORMAL_PERIOD_MS = 1_000;
const EMPTY_PERIOD_MS = 10_000;
/** With events; also detects changes without one. */
const EVENTS_PERIOD_MS = 10_000;
/** A listing that was requested earlier is out of date. */
const LISTING_AGE_MS_MAX = 2 * EVENTS_PERIOD_MS;
/** The normal period is kept for this time after an event: the runtime may list a change later. */
const SETTLE_MS = 5_000;
/** Listings take at most this share of the time, so that they do not overload a slow runtime. */
const LISTING_TIME_SHARE = 0.1;
/** The runtime is unhealthy if no listing succeeds for this time, as in Kubernetes. */
export const relistThresholdMs = 180_000;

function toGoDuration(milliseconds: number): string {
  return formatDuration(BigInt(Math.round(milliseconds * 1e6)));
}

export class Relister {
  readonly #options: RelisterOptions;
  #pods: ReadonlyMap<string, RuntimePod> = new Map();
  #hasListed = false;
  /** Pods for which `onChange` returned false. */
  #unprocessed: ReadonlySet<string> = new Set();
  #delayMs = FAST_PERIOD_MS;
  /** Minimum time between two listings. */
  #minPeriodMs = FAST_PERIOD_MS;
  #wake: AbortController = new AbortController();
  #lastSuccess: number;
  #requestedAt = Number.NEGATIVE_INFINITY;
  /** Of an announced or a listed change. */
  #lastChange: number;
  #hasEvents = false;
  #failing = false;

  constructor(options: RelisterOptions) {
    this.#options = options;
    this.#lastSuccess = options.clock.monotonic();
    this.#lastChange = this.#lastSuccess;
  }

  /** Pods at the last listing, by uid. */
  get pods(): ReadonlyMap<string, RuntimePod> {
    return this.#pods;
  }

  /** Whether the last listing had nothing of the pod. */
  isAbsent(uid: string): boolean {
    return this.#hasListed && !this.#pods.has(uid);
  }

  /** Undefined for a pod that the runtime does not have, and when the last listing is out of date. */
  findPod(uid: string): ListedPod | undefined {
    const digest = this.#pods.get(uid)?.digest;
    const requestedAt = this.#requestedAt;
    if (digest === undefined || this.#options.clock.monotonic() - requestedAt > LISTING_AGE_MS_MAX) return undefined;
    return { digest, requestedAt };
  }

  /** The end of the last listing that succeeded, or the agent's start; on the monotonic clock. */
  get lastSuccess(): number {
    return this.#lastSuccess;
  }

  /** Kubernetes' text when no listing has succeeded for too long; otherwise undefined. */
  get problem(): string | undefined {
    const elapsed = this.#options.clock.monotonic() - this.#lastSuccess;
    if (elapsed < relistThresholdMs) return undefined;
    return `pleg was last seen active ${toGoDuration(elapsed)} ago; threshold is ${toGoDuration(relistThresholdMs)}`;
  }

  /** Announces a change: the next listing comes soon, and the period is short for a while. Calls are coalesced. */
  requestRelist(): void {
    this.#lastChange = this.#options.clock.monotonic();
    this.#delayMs = FAST_PERIOD_MS;
    this.#wake.abort();
  }

  /** Whether events announce changes. Lists when they no longer do, because some may have been lost. */
  setEventStream(isOpen: boolean): void {
    const isLost = this.#hasEvents && !isOpen;
    this.#hasEvents = isOpen;
    if (isLost) this.requestRelist();
  }

  /** Lists once; rejects when the call fails. */
  async list(): Promise<ReadonlyMap<string, RuntimePod>> {
    const { runtime, signal, clock, metrics } = this.#options;
    const began = clock.monotonic();
    const pods = await listPods(runtime, signal);
    metrics?.duration.observe((clock.monotonic() - began) / 1000);
    if (this.#hasListed) metrics?.interval.observe((clock.monotonic() - this.#lastSuccess) / 1000);
    this.#lastSuccess = clock.monotonic();
    this.#minPeriodMs = Math.max(
      FAST_PERIOD_MS,
      Math.min((this.#lastSuccess - began) / LISTING_TIME_SHARE, NORMAL_PERIOD_MS),
    );
    const before = this.#pods;
    this.#pods = pods;
    this.#requestedAt = began;
    this.#hasListed = true;
    const changed = findChangedPods(before, pods);
    if (changed.length > 0) {
      this.#lastChange = clock.monotonic();
      this.#delayMs = FAST_PERIOD_MS;
    }
    const uids = [...new Set([...changed, ...this.#unprocessed])];
    this.#unprocessed = new Set(uids.filter((uid) => !this.#options.onChange(uid, pods.get(uid)?.digest ?? "", began)));
    return pods;
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(): Promise<void> {
    const { clock, signal, log } = this.#options;
    while (!signal.aborted) {
      try {
        await this.list();
        if (this.#failing) {
          this.#failing = false;
          log.info("Container runtime is reachable again");
        }
      } catch (error) {
        if (signal.aborted) {
          return;
        }
        if (!this.#failing) {
          this.#failing = true;
          log.error("Failed to list pods of the container runtime", error);
        }
        this.#delayMs = NORMAL_PERIOD_MS;
      }
      const longestMs = this.#maxPeriodMs();
      const delayMs = this.#delayMs;
      this.#delayMs = Math.min(this.#delayMs * 2, longestMs);
      this.#wake = new AbortController();
      const wake = AbortSignal.any([signal, this.#wake.signal]);
      if (delayMs > this.#minPeriodMs) await clock.sleep(delayMs - this.#minPeriodMs, wake).catch(() => undefined);
      await clock.sleep(this.#minPeriodMs, signal).catch(() => undefined);
    }
  }

  #maxPeriodMs(): number {
    if (this.#pods.size === 0) return EMPTY_PERIOD_MS;
    const isSettled = this.#options.clock.monotonic() - this.#lastChange >= SETTLE_MS && this.#unprocessed.size === 0;
    return this.#hasEvents && isSettled ? EVENTS_PERIOD_MS : NORMAL_PERIOD_MS;
  }
}

async function listPods(runtime: Runtime, signal: AbortSignal): Promise<ReadonlyMap<string, RuntimePod>> {
  const [sandboxes, containers] = await Promise.all([
    runtime.listPodSandbox({}, signal),
    runtime.listContainers({}, signal),
  ]);
  const pods = new Map<string, { uid: string; name: string; namespace: string; running: boolean; parts: string[] }>();
  const add = (found: Readonly<Record<string, string>> | undefined, running: boolean, part: string): void => {
    const uid = found?.[labels.podUid];
    if (found === undefined || uid === undefined) {
      return;
    }
    const name = found[labels.podName] ?? "";
    const namespace = found[labels.podNamespace] ?? "";
    const pod = pods.get(uid) ?? { uid, name, namespace, running: false, parts: [] };
    pod.running ||= running;
    pod.parts.push(part);
    pods.set(uid, pod);
  };
  for (const item of sandboxes.items ?? []) {
    const state = item.state ?? "SANDBOX_READY";
    add(item.labels, state === "SANDBOX_READY", sandboxDigest(item.id ?? "", state === "SANDBOX_READY"));
  }
  for (const item of containers.containers ?? []) {
    const state = item.state ?? "CONTAINER_CREATED";
    add(
      item.labels,
      state === "CONTAINER_RUNNING",
      containerDigest(item.id ?? "", containerStates[state] ?? "unknown"),
    );
  }
  return new Map(
    [...pods.values()].map(({ parts, ...pod }) => [pod.uid, { ...pod, digest: parts.sort().join(" ") }] as const),
  );
}

function findChangedPods(
  before: ReadonlyMap<string, RuntimePod>,
  after: ReadonlyMap<string, RuntimePod>,
): readonly string[] {
  const uids = new Set([...before.keys(), ...after.keys()]);
  return [...uids].filter((uid) => before.get(uid)?.digest !== after.get(uid)?.digest);
}
