/**
 * The only writer of pod status. Workers hand in statuses as often as they like; what differs from what the server has
 * goes out as one patch, the newest only. Once a deleted pod has stopped and its last status is written, its object is
 * removed.
 */

import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { podName, podNamespace, podUid } from "../pods/pod-fields.ts";
import { makeStatusPatch } from "./status-patch.ts";

export interface StatusManagerOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

interface Entry {
  pod: Pod;
  status: PodStatus | undefined;
  /** What the server has, as far as it is known. */
  server: PodStatus | undefined;
  finished: boolean;
  /** The server has no such pod any more: there is nothing left to write. */
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
      onError: (uid, error) => {
        const pod = this.#entries.get(uid)?.pod;
        options.log.warn("Cannot write pod status", {
          pod: pod === undefined ? uid : podName(pod),
          error: String(error),
        });
      },
    });
  }

  /** A worker's view. */
  setStatus(pod: Pod, status: PodStatus): void {
    const uid = podUid(pod);
    const entry = this.#entries.get(uid);
    if (entry === undefined) {
      this.#entries.set(uid, { pod, status, server: pod.status, finished: false, gone: false });
    } else {
      entry.pod = pod;
      if (entry.status === status) return;
      entry.status = status;
    }
    this.#queue.add(uid);
  }

  /** The pod as the server told it; what is there may have been changed by others. */
  podObserved(pod: Pod): void {
    const entry = this.#entries.get(podUid(pod));
    if (entry === undefined) return;
    entry.pod = pod;
    entry.server = pod.status;
    if (entry.status !== undefined && makeStatusPatch(pod.status, entry.status) !== undefined)
      this.#queue.add(podUid(pod));
  }

  /** Everything of the deleted pod has stopped. */
  podFinished(pod: Pod): void {
    const entry = this.#entries.get(podUid(pod));
    if (entry === undefined || entry.finished) return;
    entry.finished = true;
    this.#queue.add(podUid(pod));
  }

  /** The pod has left the API; its worker may go on reporting until all has stopped. */
  podDeleted(uid: string): void {
    const entry = this.#entries.get(uid);
    if (entry !== undefined) entry.gone = true;
  }

  removePod(uid: string): void {
    this.#entries.delete(uid);
    this.#queue.forget(uid);
  }

  /** Gives what is queued up to `milliseconds` to go out. */
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
    try {
      const { status } = entry;
      const patch = status === undefined ? undefined : makeStatusPatch(entry.server, status);
      if (patch !== undefined) {
        // The uid makes the server refuse when another pod of that name has taken the place.
        const body = { metadata: { uid }, status: patch };
        const answer = await this.#options.client.patch(podKind, name, "strategic", body, {
          subresource: "status",
          signal,
        });
        entry.server = answer.status;
      }
      if (entry.finished && entry.status === status) {
        await this.#options.client.delete(podKind, name, { gracePeriodSeconds: 0, preconditions: { uid } }, signal);
        entry.gone = true;
      }
    } catch (error) {
      // A pod that went while this was under way is none of the node's any more, which the server may call forbidden.
      if (!isNotFoundOrReplaced(error) && !entry.gone) throw error;
      this.#options.log.v(3)?.info("Pod is gone from the API", { pod: name.name });
      entry.gone = true;
    }
  }
}

/** Not there any more, or replaced by another of the same name. */
function isNotFoundOrReplaced(error: unknown): boolean {
  return error instanceof StatusError && (error.status.code === 404 || error.status.code === 409);
}
