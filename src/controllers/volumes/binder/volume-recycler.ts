/**
 * Recycles released volumes: a pod deletes their files, then they are available again. As in Kubernetes, for volumes of
 * the types hostPath and NFS.
 */

import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { parseQuantity, quantityValue } from "../../../api/meta/quantity.ts";
import type { Client } from "../../../client/client.ts";
import type { Informer } from "../../../client/informer/informer.ts";
import { statusCodeOf } from "../../api-errors.ts";
import { keyOf } from "../../workload/object-keys.ts";
import { messageOf } from "../../workload/pod-control.ts";

const NAMESPACE = "default";
const IMAGE = "registry.k8s.io/build-image/debian-base:bookworm-v1.0.4";
const SCRIPT = 'test -e /scrub && find /scrub -mindepth 1 -delete && test -z "$(ls -A /scrub)" || exit 1';
/** The deadline of a pod grows with the capacity. */
const TIMEOUTS = { hostPath: { min: 60, perGi: 30 }, nfs: { min: 300, perGi: 30 } } as const;
const GI = 2 ** 30;

export interface RecyclerDeps {
  readonly client: Client;
  readonly pods: Informer<Pod>;
  /** Called when `recycle` has a result for the volume. */
  readonly onEnd: (volume: string) => void;
  readonly signal: AbortSignal;
}

export interface RecyclingResult {
  /** Undefined if the volume is empty. */
  readonly error: string | undefined;
}

export function isRecyclable({ spec }: PersistentVolume): boolean {
  return spec?.hostPath !== undefined || spec?.nfs !== undefined;
}

export class VolumeRecycler implements AsyncDisposable {
  readonly #deps: RecyclerDeps;
  /** By the name of the volume. */
  readonly #running = new Map<string, Promise<void>>();
  /** The results that the next call for the volume returns. */
  readonly #ended = new Map<string, RecyclingResult>();
  readonly #stop = new AbortController();

  constructor(deps: RecyclerDeps) {
    this.#deps = deps;
  }

  /** Returns the result of the pod that has ended since the last call; else starts one unless one is running. */
  recycle(volume: PersistentVolume): RecyclingResult | undefined {
    const { name = "" } = volume.metadata ?? {};
    const result = this.#ended.get(name);
    if (this.#ended.delete(name) || this.#running.has(name) || this.#stop.signal.aborted) return result;
    const signal = AbortSignal.any([this.#deps.signal, this.#stop.signal]);
    const running = this.#recycle(volume, signal)
      .then(
        () => undefined,
        (error: unknown) => messageOf(error),
      )
      .then((error) => {
        this.#running.delete(name);
        if (signal.aborted) return;
        this.#ended.set(name, { error });
        this.#deps.onEnd(name);
      });
    this.#running.set(name, running);
    return undefined;
  }

  /** The volume was deleted. */
  forget(volume: string): void {
    this.#ended.delete(volume);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error("The recycler is closed"));
    await Promise.all(this.#running.values());
  }

  /** Rejects with Kubernetes' messages. */
  async #recycle(volume: PersistentVolume, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const pod = recyclerPod(volume);
    const name = { name: pod.metadata?.name ?? "", namespace: NAMESPACE };
    let uid: string | undefined;
    try {
      uid = (await client.create(podKind, pod, signal)).metadata?.uid;
    } catch (error) {
      if (statusCodeOf(error) !== 409) {
        throw new Error(`unexpected error creating recycler pod:  ${messageOf(error)}`, { cause: error });
      }
      await this.#delete(name, signal);
      throw new Error("old recycler pod found, will retry later", { cause: error });
    }
    let problem: string | undefined;
    try {
      problem = await this.#waitForEnd(uid, signal);
    } finally {
      await this.#delete(name, this.#deps.signal);
    }
    if (problem !== undefined) throw new Error(`failed to recycle volume: ${problem}`);
  }

  async #delete(name: { readonly name: string; readonly namespace: string }, signal: AbortSignal): Promise<void> {
    try {
      await this.#deps.client.delete(podKind, name, {}, signal);
    } catch (error) {
      if (statusCodeOf(error) === 404 || signal.aborted) return;
      throw new Error(`failed to delete recycler pod: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Resolves with why the pod failed. */
  async #waitForEnd(uid: string | undefined, signal: AbortSignal): Promise<string | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
    const isOwn = ({ metadata }: Pod): boolean => metadata?.uid === uid;
    const unsubscribe = this.#deps.pods.subscribe({
      put: (pod) => {
        if (!isOwn(pod)) return;
        if (pod.status?.phase === "Succeeded") resolve(undefined);
        if (pod.status?.phase === "Failed") resolve(pod.status.message ?? "pod failed, pod.Status.Message unknown");
      },
      delete: (pod) => {
        if (isOwn(pod)) resolve("recycler pod was deleted");
      },
    });
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      signal.throwIfAborted();
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
      unsubscribe();
    }
  }
}

/** The pods that use the claim of the volume, as `namespace/name`. */
export function podsUsing({ spec }: PersistentVolume, pods: Iterable<Pod>): readonly string[] {
  const { namespace, name } = spec?.claimRef ?? {};
  return [...pods]
    .filter(({ metadata, status }) => {
      const isFinished = status?.phase === "Succeeded" || status?.phase === "Failed";
      return metadata?.namespace === namespace && !isFinished;
    })
    .filter((pod) => (pod.spec?.volumes ?? []).some((volume) => volume.persistentVolumeClaim?.claimName === name))
    .map(keyOf);
}

function recyclerPod({ metadata, spec }: PersistentVolume): Pod {
  const { hostPath, nfs, capacity } = spec ?? {};
  const { min, perGi } = hostPath === undefined ? TIMEOUTS.nfs : TIMEOUTS.hostPath;
  const bytes = parseQuantity(capacity?.storage ?? "0");
  const capacityGi = bytes === undefined ? 0 : quantityValue(bytes) / GI;
  const source = hostPath === undefined ? { nfs } : { hostPath: { path: hostPath.path } };
  return {
    metadata: { name: `recycler-for-${metadata?.name}`, namespace: NAMESPACE },
    spec: {
      activeDeadlineSeconds: Math.max(min, Math.trunc(capacityGi) * perGi),
      restartPolicy: "Never",
      volumes: [{ name: "vol", ...source }],
      containers: [
        {
          name: "pv-recycler",
          image: IMAGE,
          command: ["/bin/sh"],
          args: ["-c", SCRIPT],
          volumeMounts: [{ name: "vol", mountPath: "/scrub" }],
        },
      ],
    },
  };
}
