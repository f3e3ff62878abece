/**
 * Creates a mirror pod in the API server for each static pod. Recreates a mirror pod that was deleted, replaces one of
 * an earlier manifest, and writes the static pod's status to it.
 */

import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { podName, podNamespace, podUid } from "../pods/pod-fields.ts";
import type { StatusManager } from "../status/status-manager.ts";

export interface MirrorPodsOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly nodeName: string;
  readonly status: Pick<StatusManager, "setStatus" | "onPodUpdate" | "onPodDelete" | "removePod">;
}

const MIRROR = "kubernetes.io/config.mirror";
const HASH = "kubernetes.io/config.hash";

export function isMirror(pod: Pod): boolean {
  return pod.metadata?.annotations?.[MIRROR] !== undefined;
}

interface MirroredPod {
  readonly pod: Pod;
  status: PodStatus | undefined;
}

export class MirrorPods implements AsyncDisposable {
  readonly #options: MirrorPodsOptions;
  /** By namespace and name; bounded by the manifests. */
  readonly #desired = new Map<string, MirroredPod>();
  /** Mirror pods in the API server, by namespace and name; bounded by the pods of the node. */
  readonly #mirrors = new Map<string, Pod>();
  readonly #queue: WorkQueue;
  #areSourcesReady = false;

  constructor(options: MirrorPodsOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      clock: options.clock,
      random: options.random,
      concurrency: 2,
      backoff: { initialMs: 200, maxMs: 30_000, jitter: 0.2 },
      work: (key, signal) => this.#sync(key, signal),
      onError: (key, error) => options.log.warn("Failed to sync mirror pod", { pod: key, error: String(error) }),
    });
  }

  /** All sources and the API server are listed: from now on deletes mirror pods without a static pod. */
  setSourcesReady(): void {
    if (this.#areSourcesReady) return;
    this.#areSourcesReady = true;
    for (const key of [...this.#desired.keys(), ...this.#mirrors.keys()]) this.#queue.add(key);
  }

  /** Sets a static pod; it replaces an earlier one of the same name. */
  put(pod: Pod): void {
    const key = fullName(pod);
    if (podUid(this.#desired.get(key)?.pod ?? {}) !== podUid(pod)) this.#desired.set(key, { pod, status: undefined });
    if (this.#areSourcesReady) this.#queue.add(key);
  }

  /** All containers of the static pod have stopped. */
  delete(pod: Pod): void {
    const key = fullName(pod);
    if (podUid(this.#desired.get(key)?.pod ?? {}) !== podUid(pod)) return;
    this.#desired.delete(key);
    if (this.#areSourcesReady) this.#queue.add(key);
  }

  setStatus(pod: Pod, status: PodStatus): void {
    const desired = this.#desired.get(fullName(pod));
    if (desired === undefined || podUid(desired.pod) !== podUid(pod)) return;
    desired.status = status;
    this.#writeStatus(fullName(pod));
  }

  /** The watch reported a mirror pod. */
  onMirrorUpdate(mirror: Pod): void {
    const key = fullName(mirror);
    this.#mirrors.set(key, mirror);
    this.#options.status.onPodUpdate(mirror);
    this.#writeStatus(key);
    if (this.#areSourcesReady) this.#queue.add(key);
  }

  onMirrorDelete(mirror: Pod): void {
    const key = fullName(mirror);
    this.#forget(key, mirror);
    if (this.#areSourcesReady) this.#queue.add(key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#queue[Symbol.asyncDispose]();
  }

  #forget(key: string, mirror: Pod): void {
    const uid = podUid(mirror);
    if (podUid(this.#mirrors.get(key) ?? {}) === uid) this.#mirrors.delete(key);
    this.#options.status.onPodDelete(uid);
    this.#options.status.removePod(uid);
  }

  /** Passes the static pod's status on as that of its mirror pod. */
  #writeStatus(key: string): void {
    const desired = this.#desired.get(key);
    const mirror = this.#mirrors.get(key);
    if (desired?.status === undefined || mirror === undefined || !isCurrent(mirror, desired.pod)) return;
    this.#options.status.setStatus(mirror, desired.status);
  }

  async #sync(key: string, signal: AbortSignal): Promise<void> {
    const { client, log } = this.#options;
    const desired = this.#desired.get(key);
    const mirror = this.#mirrors.get(key);
    if (mirror !== undefined && (desired === undefined || !isCurrent(mirror, desired.pod))) {
      const name = { name: podName(mirror), namespace: podNamespace(mirror) };
      const preconditions = { uid: podUid(mirror) };
      await client.delete(podKind, name, { gracePeriodSeconds: 0, preconditions }, signal).catch((error: unknown) => {
        // It was replaced or removed already.
        if (!(error instanceof StatusError) || ![404, 409].includes(error.status.code)) throw error;
      });
      log.v(2)?.info("Deleted mirror pod", { pod: key });
      this.#forget(key, mirror);
    }
    if (desired === undefined || this.#mirrors.has(key) || this.#desired.get(key) !== desired) return;
    const node = await client.get(nodeKind, { name: this.#options.nodeName }, signal);
    const created = await client.create(podKind, makeMirror(desired.pod, node), signal);
    // The watch may have reported its creation or deletion in the meantime.
    if (!this.#mirrors.has(key)) this.#mirrors.set(key, created);
    this.#writeStatus(key);
  }
}

function fullName(pod: Pod): string {
  return `${podNamespace(pod)}/${podName(pod)}`;
}

/** Whether it mirrors this version of the pod and is not terminating. */
function isCurrent(mirror: Pod, pod: Pod): boolean {
  const { annotations, deletionTimestamp } = mirror.metadata ?? {};
  return deletionTimestamp === undefined && annotations?.[MIRROR] === pod.metadata?.annotations?.[HASH];
}

function makeMirror(pod: Pod, node: Node): Pod {
  const { uid: _uid, annotations, ...metadata } = pod.metadata ?? {};
  const owner = {
    apiVersion: "v1",
    kind: "Node",
    name: node.metadata?.name ?? "",
    uid: node.metadata?.uid ?? "",
    controller: true,
  };
  return {
    apiVersion: "v1",
    kind: "Pod",
    ...pod,
    metadata: {
      ...metadata,
      annotations: { ...annotations, [MIRROR]: annotations?.[HASH] ?? "" },
      ownerReferences: [owner],
    },
    status: {},
  };
}
