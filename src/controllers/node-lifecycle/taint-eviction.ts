/**
 * Evicts pods from nodes with NoExecute taints that they do not tolerate, after the tolerationSeconds if they have
 * some.
 */
import type { Node, Taint } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Toleration } from "../../api/core/pod-spec/affinity.ts";
import type { EventRecorder } from "../../client/events/event-recorder.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { findToleration } from "../../scheduler/plugins/nodes/tolerations.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { formatTime } from "../../schema/value/time.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";
import { statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createEvictionMetrics, type EvictionMetrics } from "./node-metrics.ts";

interface ScheduledEviction {
  readonly node: string;
  readonly uid: string;
  /** On the monotonic clock. */
  readonly dueAt: number;
  /** Its event was recorded; a failed attempt records no other one. */
  isReported: boolean;
}

export class TaintEvictionController implements AsyncDisposable {
  readonly #deps: ControllerDeps;
  readonly #recorder: EventRecorder;
  readonly #metrics: EvictionMetrics;
  readonly #pods: Informer<Pod>;
  /** The NoExecute taints of nodes that have some. */
  readonly #taints = new Map<string, readonly Taint[]>();
  readonly #scheduled = new Map<string, ScheduledEviction>();
  readonly #timers: KeyTimers;
  readonly #queue: WorkQueue;
  readonly #unsubscribe: () => void;

  constructor(deps: ControllerDeps, recorder: EventRecorder) {
    const { clock, random, log, informers } = deps;
    this.#deps = deps;
    this.#metrics = createEvictionMetrics(deps.registry);
    this.#recorder = recorder;
    this.#timers = new KeyTimers(clock, (key) => this.#queue.add(key));
    this.#queue = new WorkQueue({
      clock,
      random,
      concurrency: 4,
      backoff: { initialMs: 100, maxMs: 60_000, jitter: 0.1 },
      work: (key, signal) => this.#syncPod(key, signal),
      onError: (key, error) => log.error("Failed to evict pod, will retry", error, { pod: key }),
    });
    this.#pods = informers.of(podKind);
    this.#unsubscribe = this.#pods.subscribe({
      put: (pod, previous) => {
        if (this.#taints.has(pod.spec?.nodeName ?? "") && isConcerned(pod, previous)) this.#schedule(pod);
      },
      delete: (pod) => this.#cancelWithEvent(pod),
    });
  }

  observe({ metadata, spec }: Node): void {
    const name = metadata?.name ?? "";
    const taints = (spec?.taints ?? []).filter(({ effect }) => effect === "NoExecute");
    const known = this.#taints.get(name);
    if (taints.length === 0) {
      this.#taints.delete(name);
      this.#cancelAllOf(name);
    } else if (known === undefined || !deepEqual(known, taints)) {
      this.#taints.set(name, taints);
      for (const pod of this.#podsOf(name)) this.#schedule(pod);
    }
  }

  /** The node was deleted: evictions that its pods wait for still happen. */
  forget(name: string): void {
    this.#taints.delete(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unsubscribe();
    this.#timers[Symbol.dispose]();
    await this.#queue[Symbol.asyncDispose]();
  }

  #cancelAllOf(node: string): void {
    for (const [key, scheduled] of [...this.#scheduled]) {
      const [namespace = "", name = ""] = key.split("/");
      const pod = scheduled.node === node ? this.#pods.get(name, namespace) : undefined;
      if (pod !== undefined) this.#cancelWithEvent(pod);
    }
  }

  #podsOf(node: string): readonly Pod[] {
    return [...this.#pods.list()].filter(({ spec }) => spec?.nodeName === node);
  }

  /** As in Kubernetes, terminating pods are marked too, and a pod that waits keeps its time when taints change. */
  #schedule(pod: Pod): void {
    const key = keyOf(pod);
    const node = pod.spec?.nodeName ?? "";
    const { uid = "" } = pod.metadata ?? {};
    if (this.#scheduled.get(key)?.uid !== uid) this.#cancel(key);
    const stayMs = toleratedMs(pod.spec?.tolerations ?? [], this.#taints.get(node) ?? []);
    if (stayMs === undefined || stayMs === 0) this.#cancelWithEvent(pod);
    if (stayMs === undefined || this.#scheduled.has(key)) return;
    this.#scheduled.set(key, { node, uid, dueAt: this.#deps.clock.monotonic() + stayMs, isReported: false });
    this.#timers.set(key, stayMs);
  }

  #cancelWithEvent(pod: Pod): void {
    const key = keyOf(pod);
    const isWaiting = this.#timers.has(key);
    this.#cancel(key);
    if (isWaiting) this.#recordEvent(pod, `Cancelling deletion of Pod ${key}`);
  }

  #cancel(key: string): void {
    this.#timers.delete(key);
    this.#queue.forget(key);
    this.#scheduled.delete(key);
  }

  async #syncPod(key: string, signal: AbortSignal): Promise<void> {
    const planned = this.#scheduled.get(key);
    if (planned === undefined) return;
    const [namespace = "", name = ""] = key.split("/");
    const pod = this.#pods.get(name, namespace);
    if (pod === undefined || pod.metadata?.uid !== planned.uid) return;
    const { client, clock, log } = this.#deps;
    const { uid } = planned;
    if (!planned.isReported) this.#recordEvent(pod, `Marking for deletion Pod ${key}`);
    planned.isReported = true;
    const condition = {
      type: "DisruptionTarget",
      status: "True",
      reason: "DeletionByTaintManager",
      message: "Taint manager: deleting due to NoExecute taint",
      lastTransitionTime: formatTime(clock.now()),
    };
    try {
      const patch = { metadata: { uid }, status: { conditions: [condition] } };
      await client.patch(podKind, { name, namespace }, "strategic", patch, { subresource: "status", signal });
      await client.delete(podKind, { name, namespace }, { preconditions: { uid } }, signal);
      this.#metrics.recordPodDeletion(clock.monotonic() - planned.dueAt);
      log.info("Evicted pod from tainted node", { pod: key, node: planned.node });
    } catch (error) {
      // After a conflict the next attempt finds whether a pod of the same name has replaced it.
      if (statusCodeOf(error) !== 404) throw error;
    }
    this.#scheduled.delete(key);
  }

  #recordEvent({ metadata }: Pod, message: string): void {
    const { namespace, name, uid } = metadata ?? {};
    this.#recorder.record(
      { kind: "Pod", apiVersion: "v1", namespace, name, uid },
      "Normal",
      "TaintManagerEviction",
      message,
    );
  }
}

/** How long the pod tolerates the taints: 0 if it does not tolerate one of them, undefined for an unlimited time. */
export function toleratedMs(tolerations: readonly Toleration[], taints: readonly Taint[]): number | undefined {
  let shortest: number | undefined;
  for (const taint of taints) {
    const toleration = findToleration(tolerations, taint);
    if (toleration === undefined) return 0;
    const { tolerationSeconds } = toleration;
    if (tolerationSeconds === undefined) continue;
    const milliseconds = Math.max(0, Number(tolerationSeconds)) * 1000;
    shortest = Math.min(shortest ?? milliseconds, milliseconds);
  }
  return shortest;
}

/** Whether the pod is new, came to another node or has other tolerations. */
function isConcerned({ spec }: Pod, previous: Pod | undefined): boolean {
  if (previous === undefined || previous.spec?.nodeName !== spec?.nodeName) return true;
  return !deepEqual(previous.spec?.tolerations, spec?.tolerations);
}

function keyOf({ metadata }: Pod): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}
