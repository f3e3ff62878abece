/** The desired pods, with a worker for each. Terminates pods of the runtime that no source has. */
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import type { ListedPod, RuntimePod } from "../runtime/relister.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { removeOrphanedPodFiles } from "./orphaned-pod-files.ts";
import type { PodServices } from "./pod-context.ts";
import { isStatic, podName, podNamespace, podUid } from "./pod-fields.ts";
import { stopAllPods } from "./stop-all-pods.ts";
import type { Termination } from "./worker/pod-termination.ts";
import { PodWorker } from "./worker/pod-worker.ts";

export interface PodManagerOptions {
  readonly services: PodServices;
  /** Whether the last listing of the runtime had nothing of the pod. */
  readonly isAbsentFromRuntime?: (uid: string) => boolean;
  /** The pod in the last listing of the runtime. */
  readonly findListed?: (uid: string) => ListedPod | undefined;
  /** How a pod ends whose end an agent before this one has begun. */
  readonly findTermination?: (pod: Pod) => Termination | undefined;
  readonly onStatus: (pod: Pod, status: PodStatus) => void;
  /** The pod and all of its files and cgroups are removed from the node, and no source has it again. */
  readonly onRemoved: (pod: Pod) => void;
  /** A pod that was removed starts again under the same uid. */
  readonly onRestart?: (pod: Pod) => void;
  /** The runtime has a pod that no source has. */
  readonly onOrphan?: () => void;
  /** Of how many orphaned pods the volumes were removed, or could not be, in one pass. */
  readonly onOrphanedVolumes?: (removed: number, failed: number) => void;
}

interface Successor {
  readonly pod: Pod;
  /** See `PodWorkerOptions`. */
  readonly seenAt: number;
}

export class PodManager {
  readonly #options: PodManagerOptions;
  /** By uid; bounded by what the sources assign to the node. */
  readonly #workers = new Map<string, PodWorker>();
  readonly #desired = new Set<string>();
  /** Pods that start when one of the same name or uid has terminated, by namespace and name; bounded by the workers. */
  readonly #successors = new Map<string, Successor>();
  /** Of orphaned pods' files, as of the last attempt to remove them. */
  #loggedProblems: ReadonlySet<string> = new Set();
  #closed = false;

  constructor(options: PodManagerOptions) {
    this.#options = options;
  }

  get workers(): IterableIterator<PodWorker> {
    return this.#workers.values();
  }

  /** Pods that the sources have, in their newest version. */
  get pods(): readonly Pod[] {
    return [...this.#workers].filter(([uid]) => this.#desired.has(uid)).map(([, worker]) => worker.pod);
  }

  /** Pods whose containers may still run. */
  get active(): readonly Pod[] {
    return [...this.#workers.values()].filter(({ stateName }) => stateName !== "terminated").map(({ pod }) => pod);
  }

  /** Pods of the sources whose containers may still run: what a pod takes that is deleted by force is free at once. */
  get assigned(): readonly Pod[] {
    return this.active.filter((pod) => this.#desired.has(podUid(pod)));
  }

  /** Terminates a pod because the node requires it; resolves when no container of it runs any more. */
  async terminate(uid: string, termination: Termination): Promise<void> {
    const worker = this.#workers.get(uid);
    worker?.terminate(termination);
    await worker?.ended;
  }

  get volumes(): PodServices["volumes"] {
    return this.#options.services.volumes;
  }

  get runtime(): Runtime {
    return this.#options.services.runtime;
  }

  /** `containerd`, as the runtime reports it. */
  get runtimeName(): string {
    return this.#options.services.getRuntimeName();
  }

  /** The agent's directory. */
  get rootDir(): string {
    return this.#options.services.settings.directories.rootDir;
  }

  isDesired(uid: string): boolean {
    return this.#desired.has(uid);
  }

  worker(uid: string): PodWorker | undefined {
    return this.#workers.get(uid);
  }

  find(namespace: string, name: string): PodWorker | undefined {
    for (const [uid, worker] of this.#workers) {
      const meta = worker.pod.metadata;
      if (meta?.namespace === namespace && meta.name === name && this.#desired.has(uid)) return worker;
    }
    return undefined;
  }

  /** A source has this version of the pod. */
  put(pod: Pod): void {
    const uid = podUid(pod);
    if (this.#closed || uid === "") return;
    this.#desired.add(uid);
    const worker = this.#workers.get(uid);
    // A manifest that returns makes the same pod again, whose first run may still terminate.
    if (worker?.isRemoved === false) worker.update(pod);
    else if (this.#predecessor(pod) !== undefined) this.#addSuccessor(pod);
    else this.#start(pod, this.#options.services.clock.monotonic());
  }

  #addSuccessor(pod: Pod): void {
    const name = fullName(pod);
    const seenAt = this.#successors.get(name)?.seenAt ?? this.#options.services.clock.monotonic();
    this.#successors.set(name, { pod, seenAt });
  }

  /** No source has the pod any more. */
  delete(uid: string): void {
    this.#desired.delete(uid);
    for (const [name, { pod }] of this.#successors) if (podUid(pod) === uid) this.#successors.delete(name);
    this.#workers.get(uid)?.remove();
  }

  /** The digest of a pod in a listing of the runtime; see `RelisterOptions.onChange`. */
  compareListing(uid: string, digest: string, requestedAt: number): boolean {
    return this.#workers.get(uid)?.compareListing(digest, requestedAt) ?? true;
  }

  /** Notifies the pod's worker. A pod without a worker is an orphan, see `terminateOrphans`. */
  onRuntimeChange(uid: string): void {
    this.#workers.get(uid)?.onRuntimeChange();
  }

  /** Terminates pods of the runtime that no source has. Call it only when every source is ready. */
  terminateOrphans(pods: ReadonlyMap<string, RuntimePod>): void {
    if (this.#closed) return;
    for (const { uid, name, namespace } of pods.values()) {
      if (this.#workers.has(uid)) continue;
      this.#options.services.log.info("Terminating orphaned pod", { pod: `${namespace}/${name}`, uid });
      this.#options.onOrphan?.();
      this.#start({ metadata: { uid, name, namespace } }, undefined);
    }
  }

  /**
   * Removes files of pods without a worker. Logs each failure once, until it does not occur any more. Call it only
   * when every source is ready.
   */
  async removeOrphanedPodFiles(): Promise<void> {
    const { settings, volumes, cgroups, log } = this.#options.services;
    const isKnown = (uid: string): boolean => this.#workers.has(uid);
    const { directories } = settings;
    const removed = await removeOrphanedPodFiles({ directories, volumes, cgroups, hasWorker: isKnown });
    this.#options.onOrphanedVolumes?.(removed.volumesRemoved, removed.volumesFailed);
    const { problems } = removed;
    for (const problem of problems) {
      if (!this.#loggedProblems.has(problem)) log.warn("Failed to remove files of an orphaned pod", { error: problem });
    }
    this.#loggedProblems = new Set(problems);
  }

  /** Ends all workers; containers continue to run unless `stopPods`. */
  async close(options: { readonly stopPods: boolean; readonly graceSeconds: number }): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop()));
    if (!options.stopPods) return;
    const { runtime, volumes, cgroups, log } = this.#options.services;
    const uids = await stopAllPods(runtime, options.graceSeconds, log);
    await cgroups.removeAll(uids).catch((error: unknown) => log.error("Failed to remove cgroups of pods", error));
    await volumes.unmountAll().catch((error: unknown) => log.error("Failed to unmount all volumes", error));
  }

  /** `seenAt`: when a source first had the pod, on the monotonic clock; undefined for an orphan. */
  #start(pod: Pod, seenAt: number | undefined): void {
    const orphan = seenAt === undefined;
    const uid = podUid(pod);
    const { services, onStatus, onRemoved, isAbsentFromRuntime, findListed } = this.#options;
    const isNew = isAbsentFromRuntime?.(uid) ?? false;
    const worker = new PodWorker({
      services,
      pod,
      isOrphan: orphan,
      isNew,
      findListed,
      seenAt,
      onStatus: orphan ? () => undefined : onStatus,
    });
    this.#workers.set(uid, worker);
    const termination = orphan ? undefined : this.#options.findTermination?.(pod);
    if (termination !== undefined) worker.terminate(termination);
    void worker.done.then(() => {
      if (this.#closed || this.#workers.get(uid) !== worker) return;
      this.#workers.delete(uid);
      if (!this.#desired.has(uid)) onRemoved(worker.pod);
      for (const other of this.#workers.values()) if (other.hasPendingResize) other.onRuntimeChange();
      const name = fullName(worker.pod);
      const next = this.#successors.get(name);
      if (next === undefined || this.#predecessor(next.pod) !== undefined) return;
      this.#successors.delete(name);
      if (podUid(next.pod) === uid) this.#options.onRestart?.(next.pod);
      this.#start(next.pod, next.seenAt);
    });
  }

  /** An edited static pod is another pod of the same name, and the two must not run at the same time. */
  #predecessor(pod: Pod): PodWorker | undefined {
    const same = this.#workers.get(podUid(pod));
    if (same !== undefined || !isStatic(pod)) return same;
    const name = fullName(pod);
    return [...this.#workers.values()].find((worker) => isStatic(worker.pod) && fullName(worker.pod) === name);
  }
}

function fullName(pod: Pod): string {
  return `${podNamespace(pod)}/${podName(pod)}`;
}
