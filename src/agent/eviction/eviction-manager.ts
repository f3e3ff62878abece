/**
 * Evicts pods when the node lacks memory, disk space, inodes or processes: observes the signals, sets the pressure
 * conditions, reclaims what no pod needs, and evicts one pod at a time. As kubelet's eviction manager.
 */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type Rate, RateHistory } from "../forecast/rate-history.ts";
import type { RecordNodeEvent } from "../node/node-events.ts";
import type { PodEventRecorder } from "../pods/pod-events.ts";
import { graceSeconds, isCritical, isTerminal, podName, podNamespace, podUid } from "../pods/pod-fields.ts";
import type { StateName } from "../pods/states/pod-state.ts";
import type { Termination } from "../pods/worker/pod-termination.ts";
import type { StatsPod } from "../stats/stats-targets.ts";
import { beginEviction, HARD_GRACE_SECONDS, recordEvicted } from "./begin-eviction.ts";
import { forecastThreshold, listCandidates, type SignalForecast } from "./eviction-forecast.ts";
import { makeEvictionMessage } from "./eviction-message.ts";
import type { EvictionRecords } from "./eviction-records.ts";
import type { NodeObserver } from "./node-observer.ts";
import { NodePressure } from "./node-pressure.ts";
import type { PodUsages } from "./pod-usage.ts";
import { rankPods } from "./rank-pods.ts";
import {
  type FileSystemLayout,
  type Observations,
  type PressureType,
  type Signal,
  type StarvedResource,
  signals,
} from "./signals.ts";
import {
  addContainerThresholds,
  computeIntervalMs,
  findMetThresholds,
  INTERVAL_MS_MAX,
  isHard,
  isOfContainerFs,
  sortByUrgency,
  type Threshold,
} from "./thresholds.ts";

/** The worker of a pod. */
export interface EvictablePod extends StatsPod {
  readonly stateName: StateName;
  /** The worker does nothing but wait. */
  readonly isIdle: boolean;
  /** Resolves when no container of the pod runs any more. */
  readonly ended: Promise<void>;
  terminate(termination: Termination): void;
}

/** Frees what no pod needs. */
export interface Reclaimer {
  /** Resolves with the number of bytes or objects. */
  removeUnused(): Promise<number>;
}

export interface EvictionManagerOptions {
  readonly thresholds: readonly Threshold[];
  /** Longest grace period of a pod for a soft threshold, in seconds; negative: the pod's own. */
  readonly maxPodGraceSeconds: number;
  /** Whether the former applies also to pods with a shorter grace period of their own; false when absent. */
  readonly overwritesPodGrace?: boolean | undefined;
  /** Whether images and writable layers may be on two file systems; true when absent. */
  readonly splitDisks?: boolean | undefined;
  readonly transitionMs: number;
  /** Observes memory at finer intervals. */
  readonly kernelMemcgNotification: boolean;
  readonly observer: Pick<NodeObserver, "findLayout" | "observe">;
  readonly measurePods: (pods: readonly EvictablePod[], resource: StarvedResource) => Promise<PodUsages>;
  /** The workers of all pods. */
  readonly pods: () => Iterable<EvictablePod>;
  /** Whether all sources have sent their pods. */
  readonly areSourcesReady: () => boolean;
  readonly records: Pick<EvictionRecords, "all" | "add" | "retain" | "isInterrupted" | "takeInterrupted">;
  readonly containers: Reclaimer;
  readonly images: Reclaimer;
  readonly recordNodeEvent: RecordNodeEvent;
  readonly events: PodEventRecorder;
  readonly onConditions: () => void;
  readonly onEvicted: (signal: Signal) => void;
  /** The age in seconds of the figures that led to an eviction. */
  readonly onStatsAge: (signal: Signal, seconds: number) => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const KILL_TIMEOUT_FACTOR = 1.5;
const KILL_TIMEOUT_MS_MIN = 10_000;
const CLEANUP_TIMEOUT_MS = 30_000;
const CLEANUP_POLL_MS = 100;
/** The window in which the rates of a forecast are measured. */
const HISTORY_MS = 120_000;
const HISTORY_SPACING_MS = 5_000;

export class EvictionManager {
  readonly #options: EvictionManagerOptions;
  readonly #pressure: NodePressure;
  #thresholds: readonly Threshold[];
  #layout: FileSystemLayout | undefined;
  #hasFailed = false;
  /** The available amounts, by signal. */
  readonly #history = new RateHistory({ windowMs: HISTORY_MS, spacingMs: HISTORY_SPACING_MS });

  constructor(options: EvictionManagerOptions) {
    this.#options = options;
    this.#thresholds = options.thresholds;
    this.#pressure = new NodePressure(options.transitionMs);
  }

  /** The pressure conditions that are true. */
  get conditions(): readonly PressureType[] {
    return this.#pressure.conditions;
  }

  /** How fast the free space on the file system of images changes. */
  get imageSpaceRate(): Rate | undefined {
    return this.#history.rateOf("imagefs.available");
  }

  /** Whether images and writable layers are not on the file system of the agent's directory. */
  async hasImageFs(): Promise<boolean> {
    this.#layout ??= await this.#findLayout();
    return this.#layout.hasImageFs;
  }

  /** The thresholds with the pods that would be evicted, those first that will be met first. */
  async forecast(): Promise<readonly SignalForecast[]> {
    const { observer, measurePods, pods } = this.#options;
    const layout = this.#layout;
    if (layout === undefined) return [];
    const observations = await observer.observe();
    const active = [...pods()].filter(isActive);
    const measured = new Map<StarvedResource, PodUsages>();
    const forecasts: SignalForecast[] = [];
    for (const threshold of this.#thresholds) {
      const { signal } = threshold;
      const { resource } = signals[signal];
      const observed = observations.get(signal);
      if (observed === undefined) continue;
      const usages = measured.get(resource) ?? (await measurePods(active, resource));
      measured.set(resource, usages);
      forecasts.push({
        ...forecastThreshold(threshold, observed, this.#history.rateOf(signal)),
        reclaimed: listReclaimers(signal, layout),
        pods: listCandidates(active, usages, signal, layout),
      });
    }
    const order = ({ inSeconds = Number.POSITIVE_INFINITY }: SignalForecast): number => inSeconds;
    return forecasts.sort((a, b) => (order(a) === order(b) ? 0 : order(a) - order(b)));
  }

  /** Resolves when the signal aborts. */
  async run(): Promise<void> {
    const { clock, log, signal } = this.#options;
    while (!signal.aborted) {
      let waitMs = INTERVAL_MS_MAX;
      try {
        // Before their records are dropped, since the pods may have ended meanwhile.
        await this.#continueInterrupted();
        await this.#dropFinishedRecords();
        if (this.#options.thresholds.length > 0) waitMs = await this.#synchronize();
        this.#hasFailed = false;
      } catch (error) {
        if (signal.aborted) return;
        if (!this.#hasFailed) log.error("Eviction manager: failed to synchronize", error);
        this.#hasFailed = true;
      }
      if (waitMs > 0) await clock.sleep(waitMs, signal).catch(() => undefined);
    }
  }

  /** Returns the milliseconds until the next check. */
  async #synchronize(): Promise<number> {
    const { observer, clock, log } = this.#options;
    this.#layout ??= await this.#findLayout();
    const observations = await observer.observe();
    const available = [...observations].map(([signal, each]) => [signal, each.available] as const);
    this.#history.add(clock.monotonic(), new Map(available));
    log.v(3)?.info("Eviction manager: observations", { observations: describeObservations(observations) });
    const due = this.#updatePressure(observations);
    if (due.length > 0) {
      const isEvicted = await this.#reclaim(due, observations, this.#layout);
      // Without a pod to evict, the next attempt is not made at once.
      return isEvicted ? 0 : INTERVAL_MS_MAX;
    }
    const graceMs = this.#pressure.graceLeftMs(clock.monotonic()) ?? INTERVAL_MS_MAX;
    return Math.min(graceMs, computeIntervalMs(this.#thresholds, observations, this.#options.kernelMemcgNotification));
  }

  async #findLayout(): Promise<FileSystemLayout> {
    const { observer, thresholds, splitDisks = true, log } = this.#options;
    const layout = await observer.findLayout();
    if (layout.isSplit && !splitDisks) {
      throw new Error("SvcletSeparateDiskGC is turned off but we still have a split filesystem");
    }
    const ignored = thresholds.filter(isOfContainerFs).map(({ signal }) => signal);
    if (ignored.length > 0) {
      log.warn(
        "Eviction manager: ignoring thresholds of containerfs: they are those of the file system that it shares",
        {
          signals: ignored,
        },
      );
    }
    this.#thresholds = addContainerThresholds(thresholds, layout);
    log.v(3)?.info("FileSystem detection", { dedicatedImageFs: layout.hasImageFs, splitImageFs: layout.isSplit });
    return layout;
  }

  #updatePressure(observations: Observations): readonly Threshold[] {
    const { clock, log, onConditions } = this.#options;
    const before = this.conditions.join();
    const due = this.#pressure.update(this.#thresholds, observations, clock.monotonic());
    if (this.conditions.join() === before) return due;
    log.info("Eviction manager: node conditions changed", { nodeConditions: this.conditions });
    onConditions();
    return due;
  }

  /** Whether it evicted a pod, or need not. */
  async #reclaim(due: readonly Threshold[], observations: Observations, layout: FileSystemLayout): Promise<boolean> {
    const { log, recordNodeEvent } = this.#options;
    const thresholds = sortByUrgency(due);
    const [threshold] = thresholds;
    if (threshold === undefined) return false;
    const { resource } = signals[threshold.signal];
    log.info("Eviction manager: attempting to reclaim", { resourceName: resource });
    recordNodeEvent("Warning", "EvictionThresholdMet", `Attempting to reclaim ${resource}`);
    if (await this.#reclaimFromNode(threshold.signal, resource, layout)) {
      log.info("Eviction manager: able to reduce resource pressure without evicting pods.", { resourceName: resource });
      return true;
    }
    log.info("Eviction manager: must evict pod(s) to reclaim", { resourceName: resource });
    const all = [...this.#options.pods()];
    // The sources have sent their pods only now.
    if (all.some(({ pod }) => this.#options.records.isInterrupted(podUid(pod)))) return true;
    const active = all.filter(isActive);
    if (active.length === 0) {
      log.warn("Eviction manager: eviction thresholds have been met, but no pods are active to evict");
      return false;
    }
    const usages = await this.#options.measurePods(active, resource);
    const ranked = rankPods(active, usages, threshold.signal, layout);
    log.info("Eviction manager: pods ranked for eviction", { pods: ranked.map(({ pod }) => fullName(pod)) });
    this.#observeAges(thresholds, observations);
    for (const each of ranked) {
      const usage = usages.get(podUid(each.pod));
      const { message, annotations } = makeEvictionMessage(resource, each.pod, usage, thresholds, observations);
      if (!(await this.#evict(each, isHard(threshold), message, annotations))) continue;
      this.#options.onEvicted(threshold.signal);
      await this.#waitForCleanup(each);
      return true;
    }
    log.info("Eviction manager: unable to evict any pods from the node");
    return false;
  }

  /** Whether no threshold is met any more. */
  async #reclaimFromNode(signal: Signal, resource: StarvedResource, layout: FileSystemLayout): Promise<boolean> {
    const reclaimers = listReclaimers(signal, layout).map((name) => this.#options[name]);
    if (reclaimers.length === 0) return false;
    for (const each of reclaimers) {
      try {
        await each.removeUnused();
      } catch (error) {
        const fields = { resourceName: resource, error: String(error) };
        this.#options.log.info(
          "Eviction manager: unexpected error when attempting to reduce resource pressure",
          fields,
        );
      }
    }
    return findMetThresholds(this.#thresholds, await this.#options.observer.observe(), true).length === 0;
  }

  #observeAges(thresholds: readonly Threshold[], observations: Observations): void {
    const now = this.#options.clock.now();
    for (const { signal } of thresholds) {
      const at = observations.get(signal)?.at;
      if (at !== undefined) this.#options.onStatsAge(signal, Math.max(0, now - at) / 1000);
    }
  }

  /** False for a pod that must not be evicted. Resolves when its containers have stopped, or a timeout passed. */
  async #evict(
    each: EvictablePod,
    isImmediate: boolean,
    message: string,
    annotations: Readonly<Record<string, string>>,
  ): Promise<boolean> {
    const { events, log } = this.#options;
    const { pod } = each;
    if (isCritical(pod)) {
      log.warn("Eviction manager: cannot evict a critical pod", { pod: fullName(pod) });
      return false;
    }
    const grace = isImmediate ? HARD_GRACE_SECONDS : this.#chooseSoftGrace(pod);
    await beginEviction(each, { message, graceSeconds: grace, annotations }, this.#options);
    if (await this.#waitForContainers(each, grace ?? graceSeconds(pod))) {
      log.info("Eviction manager: pod is evicted successfully", { pod: fullName(pod) });
    } else {
      const text = "Container runtime did not kill the pod within specified grace period.";
      events.recordPodEvent(pod, "Warning", "ExceededGracePeriod", text);
      log.warn("Eviction manager: pod failed to evict", { pod: fullName(pod), error: "timed out waiting to kill pod" });
    }
    return true;
  }

  /** Until the pods that an earlier process was evicting are gone, what they use is not free. */
  async #continueInterrupted(): Promise<void> {
    const { events, pods, records } = this.#options;
    for (const each of [...pods()]) {
      const record = records.takeInterrupted(podUid(each.pod));
      if (record === undefined) continue;
      recordEvicted(each.pod, record, events);
      if (await this.#waitForContainers(each, record.graceSeconds ?? graceSeconds(each.pod))) {
        await this.#waitForCleanup(each);
      }
    }
  }

  #chooseSoftGrace(pod: Pod): number | undefined {
    const { maxPodGraceSeconds, overwritesPodGrace = false } = this.#options;
    if (maxPodGraceSeconds < 0) return undefined;
    return overwritesPodGrace ? maxPodGraceSeconds : Math.min(maxPodGraceSeconds, graceSeconds(pod));
  }

  #waitForContainers(each: EvictablePod, grace: number): Promise<boolean> {
    return this.#waitAtMost(each.ended, Math.max(KILL_TIMEOUT_MS_MIN, grace * 1000 * KILL_TIMEOUT_FACTOR));
  }

  /** False when the time has passed first, or the agent stops. */
  async #waitAtMost(work: Promise<void>, milliseconds: number): Promise<boolean> {
    const { clock, signal } = this.#options;
    const ended = new AbortController();
    const timeout = clock.sleep(milliseconds, AbortSignal.any([signal, ended.signal])).then(
      () => false,
      () => false,
    );
    return await Promise.race([work.then(() => true), timeout]).finally(() => ended.abort());
  }

  async #waitForCleanup(each: EvictablePod): Promise<void> {
    const { clock, log, signal } = this.#options;
    const pods = [fullName(each.pod)];
    log.info("Eviction manager: pods evicted, waiting for pod to be cleaned up", { pods });
    const until = clock.monotonic() + CLEANUP_TIMEOUT_MS;
    while (!this.#isCleanedUp(each)) {
      if (signal.aborted) return;
      if (clock.monotonic() >= until) {
        log.info("Eviction manager: timed out waiting for pods to be cleaned up", { pods });
        return;
      }
      await clock.sleep(CLEANUP_POLL_MS, signal).catch(() => undefined);
    }
    log.info("Eviction manager: pods successfully cleaned up", { pods });
  }

  /** The worker of a terminated pod waits once it has removed the volumes. */
  #isCleanedUp(each: EvictablePod): boolean {
    if (each.stateName === "terminated" && each.isIdle) return true;
    for (const other of this.#options.pods()) if (other === each) return false;
    return true;
  }

  async #dropFinishedRecords(): Promise<void> {
    const { records, pods, areSourcesReady } = this.#options;
    if (records.all.length === 0) return;
    const known = new Map([...pods()].map((each) => [podUid(each.pod), each]));
    const isReady = areSourcesReady();
    await records.retain(({ uid }) => {
      const each = known.get(uid);
      // Until its volumes are removed, what it used is not free.
      return each === undefined ? !isReady : !isTerminal(each.pod) || !this.#isCleanedUp(each);
    });
  }
}

/** A pod that the node has admitted and that has not ended. */
function isActive({ pod, stateName }: EvictablePod): boolean {
  return stateName !== "terminated" && stateName !== "admitting" && stateName !== "refused" && !isTerminal(pod);
}

/** What frees space on the file system of the signal, in order. */
function listReclaimers(
  signal: Signal,
  { hasImageFs, isSplit }: FileSystemLayout,
): readonly ("containers" | "images")[] {
  if (signals[signal].condition !== "DiskPressure") return [];
  if (!hasImageFs) return ["containers", "images"];
  if (isSplit) return signal.startsWith("imagefs.") ? ["images"] : ["containers"];
  return signal.startsWith("nodefs.") ? [] : ["containers", "images"];
}

function fullName(pod: Pod): string {
  return `${podNamespace(pod)}/${podName(pod)}`;
}

function describeObservations(observations: Observations): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...observations].map(([signal, { available, capacity }]) => [signal, `${available} of ${capacity}`]),
  );
}
