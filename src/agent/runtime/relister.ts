/**
 * Notices what changes in the runtime without asking about each pod: lists sandboxes and containers and compares. The
 * pace follows the life of the node: quick after a change, every `calmMs` while pods run, seldom when there are none.
 */

import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { containerDigest, containerStates, labels, sandboxDigest } from "./observation.ts";
import type { Runtime } from "./runtime.ts";

export interface RelisterOptions {
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Called whenever something of a pod appeared, changed or went, with what is there now as in `digestOf`, and since
   * when the runtime was asked for it on the monotonic clock. False: not now; the next listing tells it again.
   */
  readonly onChange: (uid: string, digest: string, askedAt: number) => boolean;
  readonly signal: AbortSignal;
}

/** What a listing says of a pod that the sources may not know (any more). */
export interface RuntimePod {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly running: boolean;
  /** Changes whenever anything of the pod does; as in `digestOf`. */
  readonly digest: string;
}

const FAST_PERIOD_MS = 100;
const NORMAL_PERIOD_MS = 1_000;
const EMPTY_PERIOD_MS = 10_000;
/** Of the time, a listing takes no more than this part: a runtime that is slow has enough to do. */
const LISTING_TIME_SHARE = 0.1;
/** A runtime that answers no listing for so long is called down. */
export const relistThresholdMs = 180_000;

export class Relister {
  readonly #options: RelisterOptions;
  #pods: ReadonlyMap<string, RuntimePod> = new Map();
  #hasListed = false;
  /** Pods whose change nobody wanted to hear of yet. */
  #unheard: ReadonlySet<string> = new Set();
  #delay = FAST_PERIOD_MS;
  /** No two listings are closer together. */
  #paceMs = FAST_PERIOD_MS;
  #wake: AbortController = new AbortController();
  #lastSuccess: number;
  #failing = false;

  constructor(options: RelisterOptions) {
    this.#options = options;
    this.#lastSuccess = options.clock.monotonic();
  }

  /** Pods at the last listing, by uid. */
  get pods(): ReadonlyMap<string, RuntimePod> {
    return this.#pods;
  }

  /** At the last listing the runtime had nothing of the pod. */
  isAbsent(uid: string): boolean {
    return this.#hasListed && !this.#pods.has(uid);
  }

  /** True while listings succeed often enough. */
  get healthy(): boolean {
    return this.#options.clock.monotonic() - this.#lastSuccess < relistThresholdMs;
  }

  /** Says that a change is expected: lists soon, however often this is said, and quickens for a while. */
  requestRelist(): void {
    this.#delay = FAST_PERIOD_MS;
    this.#wake.abort();
  }

  /** Lists once; rejects when the runtime does not answer. */
  async list(): Promise<ReadonlyMap<string, RuntimePod>> {
    const { runtime, signal, clock } = this.#options;
    const began = clock.monotonic();
    const pods = await listPods(runtime, signal);
    this.#lastSuccess = clock.monotonic();
    this.#paceMs = Math.max(
      FAST_PERIOD_MS,
      Math.min((this.#lastSuccess - began) / LISTING_TIME_SHARE, NORMAL_PERIOD_MS),
    );
    const before = this.#pods;
    this.#pods = pods;
    this.#hasListed = true;
    const changed = changedPods(before, pods);
    if (changed.length > 0) {
      this.#delay = FAST_PERIOD_MS;
    }
    const told = [...new Set([...changed, ...this.#unheard])];
    this.#unheard = new Set(told.filter((uid) => !this.#options.onChange(uid, pods.get(uid)?.digest ?? "", began)));
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
          log.info("Container runtime answers again");
        }
      } catch (error) {
        if (signal.aborted) {
          return;
        }
        if (!this.#failing) {
          this.#failing = true;
          log.error("Cannot list pods of the container runtime", error);
        }
        this.#delay = NORMAL_PERIOD_MS;
      }
      const calm = this.#pods.size === 0 ? EMPTY_PERIOD_MS : NORMAL_PERIOD_MS;
      const delay = this.#delay;
      this.#delay = Math.min(this.#delay * 2, calm);
      this.#wake = new AbortController();
      const patient = AbortSignal.any([signal, this.#wake.signal]);
      if (delay > this.#paceMs) await clock.sleep(delay - this.#paceMs, patient).catch(() => undefined);
      await clock.sleep(this.#paceMs, signal).catch(() => undefined);
    }
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

function changedPods(
  before: ReadonlyMap<string, RuntimePod>,
  after: ReadonlyMap<string, RuntimePod>,
): readonly string[] {
  const uids = new Set([...before.keys(), ...after.keys()]);
  return [...uids].filter((uid) => before.get(uid)?.digest !== after.get(uid)?.digest);
}
