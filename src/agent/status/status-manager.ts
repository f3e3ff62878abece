/**
 * Writes the status of pods to the API server. Sends the difference between the newest status and the server's as one
 * patch; skips statuses in between. Deletes the object of a deleted pod when the pod has stopped and its last status is
 * written. `agent/pods` computes the statuses and works without an API server; therefore this is not part of it.
 */

import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Histogram } from "../../std/metrics/metrics.ts";
import type { QueueMetrics } from "../../std/metrics/queue-metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import { podName, podNamespace, podUid } from "../pods/pod-fields.ts";
import { makeStatusPatch } from "./status-patch.ts";

export interface StatusManagerOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly queueMetrics?: QueueMetrics | undefined;
  /** Seconds from a change of a status to its update in the API server. */
  readonly syncDuration?: Histogram | undefined;
}

interface Entry {
  pod: Pod;
  status: PodStatus | undefined;
  /** When the status first differed from the last one that was sent, on the monotonic clock. */
  changedAt: number | undefined;
  /** The last status that the server returned. */
  server: PodStatus | undefined;
  finished: boolean;
  /** The server no longer has the pod: writes nothing more. */
  gone: boolean;
}

export class StatusManager implements AsyncDisposable {
  readonly #options: StatusManagerOptions;
  /** By uid; bounded by the pods of the node. */
  readonly #entries = new Map<string, Entry>();
  readonly #queue: WorkQueue;

  constructor(options: StatusManagerOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      clock: options.clock,
      random: options.random,
      concurrency: 4,
      backoff: { initialMs: 200, maxMs: 30_000, jitter: 0.2 },
      work: (uid, signal) => this.#sync(uid, signal),
      metrics: options.queueMetrics,
      onError: (uid, error) => {
        const pod = this.#entries.get(uid)?.pod;
        options.log.warn("Failed to update pod status", {
          pod: pod === undefined ? uid : podName(pod),
          error: String(error),
        });
      },
    });
  }

  /** Sets the status that a worker has computed. */
  setStatus(pod: Pod, status: PodStatus): void {
    const uid = podUid(pod);
    const entry = this.#entries.get(uid);
    const changedAt = this.#options.clock.monotonic();
    if (entry === undefined) {
      this.#entries.set(uid, { pod, status, changedAt, server: pod.status, finished: false, gone: false });
    } else {
      entry.pod = pod;
      if (entry.status === status) return;
      entry.status = status;
      entry.changedAt ??= changedAt;
    }
    this.#queue.add(uid);
  }

  /** The watch reported the pod; other clients may have changed its status. */
  onPodUpdate(pod: Pod): void {
    const entry = this.#entries.get(podUid(pod));
    if (entry === undefined) return;
    entry.pod = pod;
    entry.server = pod.status;
    if (entry.status !== undefined && makeStatusPatch(pod.status, entry.status) !== undefined)
      this.#queue.add(podUid(pod));
  }

  /** All containers of the deleted pod have stopped. */
  onPodFinished(pod: Pod): void {
    const entry = this.#entries.get(podUid(pod));
    if (entry === undefined || entry.finished) return;
    entry.finished = true;
    this.#queue.add(podUid(pod));
  }

  /** The pod was removed from the API server; its worker may set statuses until all containers have stopped. */
  onPodDelete(uid: string): void {
    const entry = this.#entries.get(uid);
    if (entry !== undefined) entry.gone = true;
  }

  removePod(uid: string): void {
    this.#entries.delete(uid);
    this.#queue.forget(uid);
  }

  /** Waits until the queue is empty, at most `milliseconds`. */
  async flush(milliseconds: number): Promise<void> {
    const limit = new AbortController();
    const sleep = this.#options.clock.sleep(milliseconds, limit.signal).catch(() => undefined);
    await Promise.race([this.#queue.idle(), sleep]);
    limit.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#queue[Symbol.asyncDispose]();
  }

  async #sync(uid: string, signal: AbortSignal): Promise<void> {
    const entry = this.#entries.get(uid);
    if (entry === undefined || entry.gone) return;
    const name = { name: podName(entry.pod), namespace: podNamespace(entry.pod) };
    const { status, changedAt } = entry;
    entry.changedAt = undefined;
    try {
      const patch = status === undefined ? undefined : makeStatusPatch(entry.server, status);
      if (patch !== undefined) {
        // With the uid, the server rejects the patch if another pod of that name has replaced this one.
        const body = { metadata: { uid }, status: patch };
        const updated = await this.#options.client.patch(podKind, name, "strategic", body, {
          subresource: "status",
          signal,
        });
        entry.server = updated.status;
        const { clock, syncDuration } = this.#options;
        if (changedAt !== undefined) syncDuration?.observe((clock.monotonic() - changedAt) / 1000);
      }
      if (entry.finished && entry.status === status) {
        await this.#options.client.delete(podKind, name, { gracePeriodSeconds: 0, preconditions: { uid } }, signal);
        entry.gone = true;
      }
    } catch (error) {
      entry.changedAt = changedAt;
      // If the pod was removed in the meantime, the server may respond with 403, because it is not the node's any more.
      if (!isNotFoundOrReplaced(error) && !entry.gone) throw error;
      this.#options.log.v(3)?.info("Pod was removed from the API server", { pod: name.name });
      entry.gone = true;
    }
  }
}

/** Removed, or replaced by another pod of the same name. */
function isNotFoundOrReplaced(error: unknown): boolean {
  return error instanceof StatusError && (error.status.code === 404 || error.status.code === 409);
}
