/**
 * Ends pods in an order when the machine shuts down, while the machine waits: as kubelet's graceful node shutdown.
 *
 *     notice → node NotReady → groups of pods, by ascending priority → statuses sent → lock released
 */
import { join } from "node:path";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { isPlainObject } from "../../../schema/value/plain-object.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { Termination } from "../../pods/worker/pod-termination.ts";
import { readStateFile, writeStateFile } from "../../resource-managers/state-file.ts";
import type { RecordNodeEvent } from "../node-events.ts";
import { groupByPriority, type ShutdownGroup, totalGraceMs } from "./priority-groups.ts";
import type { InhibitorLock, ShutdownNotices } from "./shutdown-notices.ts";
import type { ShutdownGauges } from "./shutdown-times.ts";

/** The worker of a pod. */
export interface EndingPod {
  readonly pod: Pod;
  /** Resolves when no container of the pod runs any more, and its volumes are released. */
  readonly released: Promise<void>;
  terminate(termination: Termination): void;
}

export interface ShutdownManagerOptions {
  /** By ascending priority; not empty. */
  readonly groups: readonly ShutdownGroup[];
  /** For the times of the last shutdown, which are also written to a file; undefined: they are not recorded. */
  readonly gauges: ShutdownGauges | undefined;
  readonly rootDir: string;
  readonly notices: ShutdownNotices;
  /** Pods whose containers may still run. */
  readonly pods: () => readonly EndingPod[];
  readonly recordNodeEvent: RecordNodeEvent;
  /** Reports the node's status at once. */
  readonly reportStatus: () => void;
  /** Sends the statuses of the pods. */
  readonly flushStatuses: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

const RECONNECT_MS = 1_000;
const RECONNECT_MS_MAX = 60_000;
const DEFAULT_GRACE_SECONDS = 30;
const STATE_FILE = "graceful_node_shutdown_state";
const MESSAGE = "Pod was terminated in response to imminent node shutdown.";

/** In the format of kubelet's file: RFC 3339. */
interface ShutdownTimes {
  readonly startTime: string;
  readonly endTime: string;
}

/** As Go prints the time of what has not happened. */
const NO_TIME = "0001-01-01T00:00:00Z";

export class ShutdownManager {
  readonly #options: ShutdownManagerOptions;
  readonly #gauges: ShutdownGauges | undefined;
  #lock: InhibitorLock | undefined;
  #isShuttingDown = false;
  /** The last notice; the next one follows it. */
  #last: Promise<void> = Promise.resolve();

  constructor(options: ShutdownManagerOptions) {
    this.#options = options;
    this.#gauges = options.gauges;
  }

  /** True from the notice on, until the shutdown is cancelled. */
  get isShuttingDown(): boolean {
    return this.#isShuttingDown;
  }

  /** Resolves when the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    await this.#exposeLastTimes();
    let failure = "";
    let pauseMs = RECONNECT_MS;
    while (!signal.aborted) {
      try {
        await this.#watch(signal);
        failure = "";
      } catch (error) {
        if (signal.aborted) break;
        if (failure !== String(error)) log.error("Failed to start node shutdown manager", error);
        pauseMs = failure === String(error) ? Math.min(2 * pauseMs, RECONNECT_MS_MAX) : RECONNECT_MS;
        failure = String(error);
      }
      await clock.sleep(pauseMs, signal).catch(() => undefined);
    }
    await this.#last;
    await this.#release();
  }

  /** Watches before it takes the lock, so that no notice is missed that waits for the lock. */
  async #watch(signal: AbortSignal): Promise<void> {
    const { notices, groups } = this.#options;
    await notices.prepare(totalGraceMs(groups));
    const stop = new AbortController();
    const either = AbortSignal.any([signal, stop.signal]);
    const { promise: ready, resolve: onWatching } = Promise.withResolvers<void>();
    const onNotice = (isShuttingDown: boolean): void => this.#enqueue(isShuttingDown, signal);
    const watching = notices.watch({ onWatching, onNotice }, either);
    watching.catch(() => {});
    try {
      await Promise.race([ready, watching]);
      if (!this.#isShuttingDown) await this.#acquire();
      await watching;
    } finally {
      stop.abort();
      await watching.catch(() => {});
    }
  }

  #enqueue(isShuttingDown: boolean, signal: AbortSignal): void {
    const { log, recordNodeEvent, reportStatus } = this.#options;
    // A second notice of the same kind changes nothing.
    if (isShuttingDown === this.#isShuttingDown) return;
    log.info("Shutdown manager detected new shutdown event", { event: isShuttingDown ? "shutdown" : "cancelled" });
    const what = isShuttingDown ? "event" : "cancellation";
    recordNodeEvent("Normal", "Shutdown", `Shutdown manager detected shutdown ${what}`);
    this.#isShuttingDown = isShuttingDown;
    reportStatus();
    this.#last = this.#last.then(async () => {
      try {
        await (isShuttingDown ? this.#endPods(signal) : this.#acquire());
      } catch (error) {
        log.error("Shutdown manager failed to process shutdown event", error);
      }
    });
  }

  async #endPods(signal: AbortSignal): Promise<void> {
    const { clock, groups, pods, log, flushStatuses } = this.#options;
    log.info("Shutdown manager processing shutdown event");
    const startedAt = clock.now();
    try {
      await this.#recordTimes(startedAt, undefined);
      for (const group of groupByPriority(groups, pods())) {
        if (group.pods.length > 0) await this.#endGroup(group.pods, group.graceSeconds, signal);
      }
      await flushStatuses();
      await this.#recordTimes(startedAt, clock.now());
    } finally {
      await this.#release();
    }
    log.info("Shutdown manager completed processing shutdown event, node will shutdown shortly");
  }

  /**
   * Resolves when the containers of all of them have stopped and their volumes are released, or their time is over: a
   * driver of volumes, which ends with a later group, can unmount them until then.
   */
  async #endGroup(pods: readonly EndingPod[], groupSeconds: number, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const timeout = new AbortController();
    for (const each of pods) {
      const own = each.pod.spec?.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
      const graceSeconds = Math.min(own, groupSeconds);
      log.v(1)?.info("Shutdown manager killing pod with gracePeriod", {
        pod: `${each.pod.metadata?.namespace}/${each.pod.metadata?.name}`,
        gracePeriod: graceSeconds,
      });
      each.terminate({ graceSeconds, failure: { reason: "Terminated", message: MESSAGE }, disruption: MESSAGE });
    }
    const late = clock
      .sleep(groupSeconds * 1000, AbortSignal.any([signal, timeout.signal]))
      .then(() => log.info("Shutdown manager pod killing time out", { gracePeriod: groupSeconds }))
      .catch(() => undefined);
    await Promise.race([Promise.all(pods.map(({ released }) => released)), late]);
    timeout.abort();
    await late;
  }

  async #acquire(): Promise<void> {
    const lock = await this.#options.notices.inhibit();
    await this.#release();
    this.#lock = lock;
  }

  async #release(): Promise<void> {
    const lock = this.#lock;
    this.#lock = undefined;
    await lock?.release();
  }

  get #statePath(): string {
    return join(this.#options.rootDir, STATE_FILE);
  }

  /** The shutdown itself does not depend on the file. */
  async #recordTimes(startedAt: number, endedAt: number | undefined): Promise<void> {
    if (this.#gauges === undefined) return;
    this.#gauges.start.set(Math.floor(startedAt / 1000));
    this.#gauges.end.set(Math.floor((endedAt ?? 0) / 1000));
    const print = (time: number | undefined): string => (time === undefined ? NO_TIME : new Date(time).toISOString());
    const times: ShutdownTimes = { startTime: print(startedAt), endTime: print(endedAt) };
    try {
      await writeStateFile(this.#statePath, JSON.stringify(times));
    } catch (error) {
      this.#options.log.warn("Failed to store graceful shutdown state", { error: String(error) });
    }
  }

  async #exposeLastTimes(): Promise<void> {
    if (this.#gauges === undefined) return;
    try {
      const text = await readStateFile(this.#statePath);
      const found: unknown = text === undefined ? {} : JSON.parse(text);
      const { startTime, endTime } = isPlainObject(found) ? found : {};
      const seconds = (time: unknown): number =>
        typeof time === "string" ? Math.max(0, Math.floor(Date.parse(time) / 1000) || 0) : 0;
      this.#gauges.start.set(seconds(startTime));
      this.#gauges.end.set(seconds(endTime));
    } catch (error) {
      this.#options.log.warn("Failed to load graceful shutdown state", { error: String(error) });
    }
  }
}
