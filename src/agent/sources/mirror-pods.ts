/**
 * Static pods as the API server shows them: for each a mirror pod that this node owns. A mirror that was deleted comes
 * back, one of an earlier manifest is replaced, and the static pod's status is written to its mirror.
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
  readonly status: Pick<StatusManager, "setStatus" | "podObserved" | "podDeleted" | "removePod">;
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
  readonly #wanted = new Map<string, MirroredPod>();
  /** What the server has, by the same; bounded by the pods of the node. */
  readonly #mirrors = new Map<string, Pod>();
  readonly #queue: WorkQueue;
  #complete = false;

  constructor(options: MirrorPodsOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      clock: options.clock,
      random: options.random,
      concurrency: 2,
      backoff: { initialMs: 200, maxMs: 30_000, jitter: 0.2 },
      work: (key, signal) => this.#sync(key, signal),
      onError: (key, error) => options.log.warn("Cannot mirror static pod", { pod: key, error: String(error) }),
    });
  }

  /** Every source and the server have told what they have: mirrors of no static pod go now. */
  setSourcesReady(): void {
    if (this.#complete) return;
    this.#complete = true;
    for (const key of [...this.#wanted.keys(), ...this.#mirrors.keys()]) this.#queue.add(key);
  }

  /** A static pod is to run; it takes the place of an earlier one of its name. */
  put(pod: Pod): void {
    const key = fullName(pod);
    if (podUid(this.#wanted.get(key)?.pod ?? {}) !== podUid(pod)) this.#wanted.set(key, { pod, status: undefined });
    if (this.#complete) this.#queue.add(key);
  }

  /** All of the static pod has stopped. */
  delete(pod: Pod): void {
    const key = fullName(pod);
    if (podUid(this.#wanted.get(key)?.pod ?? {}) !== podUid(pod)) return;
    this.#wanted.delete(key);
    if (this.#complete) this.#queue.add(key);
  }

  setStatus(pod: Pod, status: PodStatus): void {
    const wanted = this.#wanted.get(fullName(pod));
    if (wanted === undefined || podUid(wanted.pod) !== podUid(pod)) return;
    wanted.status = status;
    this.#write(fullName(pod));
  }

  /** The server told of a mirror pod. */
  mirrorPut(mirror: Pod): void {
    const key = fullName(mirror);
    this.#mirrors.set(key, mirror);
    this.#options.status.podObserved(mirror);
    this.#write(key);
    if (this.#complete) this.#queue.add(key);
  }

  mirrorDeleted(mirror: Pod): void {
    const key = fullName(mirror);
    this.#forget(key, mirror);
    if (this.#complete) this.#queue.add(key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#queue[Symbol.asyncDispose]();
  }

  #forget(key: string, mirror: Pod): void {
    const uid = podUid(mirror);
    if (podUid(this.#mirrors.get(key) ?? {}) === uid) this.#mirrors.delete(key);
    this.#options.status.podDeleted(uid);
    this.#options.status.removePod(uid);
  }

  /** The status of the static pod becomes that of its mirror. */
  #write(key: string): void {
    const wanted = this.#wanted.get(key);
    const mirror = this.#mirrors.get(key);
    if (wanted?.status === undefined || mirror === undefined || !isCurrent(mirror, wanted.pod)) return;
    this.#options.status.setStatus(mirror, wanted.status);
  }

  async #sync(key: string, signal: AbortSignal): Promise<void> {
    const { client, log } = this.#options;
    const wanted = this.#wanted.get(key);
    const mirror = this.#mirrors.get(key);
    if (mirror !== undefined && (wanted === undefined || !isCurrent(mirror, wanted.pod))) {
      const name = { name: podName(mirror), namespace: podNamespace(mirror) };
      const preconditions = { uid: podUid(mirror) };
      await client.delete(podKind, name, { gracePeriodSeconds: 0, preconditions }, signal).catch((error: unknown) => {
        // Another one of its name has come, or none is left.
        if (!(error instanceof StatusError) || ![404, 409].includes(error.status.code)) throw error;
      });
      log.v(2)?.info("Deleted mirror pod", { pod: key });
      this.#forget(key, mirror);
    }
    if (wanted === undefined || this.#mirrors.has(key) || this.#wanted.get(key) !== wanted) return;
    const node = await client.get(nodeKind, { name: this.#options.nodeName }, signal);
    const made = await client.create(podKind, makeMirror(wanted.pod, node), signal);
    // The watch may have told of it, or of its end, in the meantime.
    if (!this.#mirrors.has(key)) this.#mirrors.set(key, made);
    this.#write(key);
  }
}

function fullName(pod: Pod): string {
  return `${podNamespace(pod)}/${podName(pod)}`;
}

/** Shows this very pod, and is not about to go. */
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
