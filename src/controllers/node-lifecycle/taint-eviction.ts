/**
 * Evicts pods from nodes with NoExecute taints that they do not tolerate, after the tolerationSeconds if they have
 * some. Only pods of tainted nodes are watched.
 */

import type { Node, Taint } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Toleration } from "../../api/core/pod-spec/affinity.ts";
import type { EventRecorder } from "../../client/events/event-recorder.ts";
import { type Informer, startInformer } from "../../client/informer/informer.ts";
import { tolerates } from "../../scheduler/plugins/nodes/tolerations.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { formatTime } from "../../schema/value/time.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";
import { isNotFoundOrConflict } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";

interface TaintedNode {
  taints: readonly Taint[];
  readonly pods: Informer<Pod>;
}

interface ScheduledEviction {
  readonly node: string;
  readonly uid: string;
  /** Monotonic time of the first matching taint: later taints do not restart the toleration. */
  readonly since: number;
}

export class TaintEvictionController implements AsyncDisposable {
  readonly #deps: ControllerDeps;
  readonly #recorder: EventRecorder;
  readonly #nodes = new Map<string, TaintedNode>();
  readonly #scheduled = new Map<string, ScheduledEviction>();
  readonly #timers: KeyTimers;
  readonly #queue: WorkQueue;
  readonly #closing = new Set<Promise<void>>();

  constructor(deps: ControllerDeps, recorder: EventRecorder) {
    const { clock, random, log } = deps;
    this.#deps = deps;
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
  }

  observe({ metadata, spec }: Node): void {
    const name = metadata?.name ?? "";
    const taints = (spec?.taints ?? []).filter(({ effect }) => effect === "NoExecute");
    const known = this.#nodes.get(name);
    if (taints.length === 0) {
      this.forget(name);
    } else if (known === undefined) {
      const { observer, clock, random, log, signal } = this.#deps;
      const query = { fieldSelector: `spec.nodeName=${name}` };
      const pods = startInformer({ client: observer, clock, random, log, kind: podKind, query }, signal);
      this.#nodes.set(name, { taints, pods });
      pods.subscribe({
        put: (pod) => this.#schedule(name, pod),
        delete: (pod) => this.#cancel(keyOf(pod)),
      });
    } else if (!deepEqual(known.taints, taints)) {
      known.taints = taints;
      for (const pod of known.pods.list()) this.#schedule(name, pod, true);
    }
  }

  /** The node has no NoExecute taint any more, or was deleted. */
  forget(name: string): void {
    const known = this.#nodes.get(name);
    if (known === undefined) return;
    this.#nodes.delete(name);
    for (const pod of known.pods.list()) {
      if (this.#cancel(keyOf(pod))) this.#recordEvent(pod, `Cancelling deletion of Pod ${keyOf(pod)}`);
    }
    const closing = Promise.resolve(known.pods[Symbol.asyncDispose]()).finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timers[Symbol.dispose]();
    await this.#queue[Symbol.asyncDispose]();
    await Promise.all([...this.#nodes.values()].map(({ pods }) => pods[Symbol.asyncDispose]()));
    await Promise.all(this.#closing);
  }

  /** Kubernetes marks terminating pods again when their node gets a taint that they do not tolerate. */
  #schedule(node: string, pod: Pod, isTaintNew = false): void {
    const key = keyOf(pod);
    const { uid = "", deletionTimestamp } = pod.metadata ?? {};
    const known = this.#scheduled.get(key);
    if (known !== undefined && known.uid !== uid) this.#cancel(key);
    const tainted = this.#nodes.get(node);
    const stayMs = tainted === undefined ? undefined : toleratedMs(pod.spec?.tolerations ?? [], tainted.taints);
    const isMarked = deletionTimestamp !== undefined && !(isTaintNew && stayMs === 0);
    if (stayMs === undefined || isMarked) {
      this.#cancel(key);
      return;
    }
    const { clock } = this.#deps;
    const since = this.#scheduled.get(key)?.since ?? clock.monotonic();
    this.#scheduled.set(key, { node, uid, since });
    this.#timers.set(key, since + stayMs - clock.monotonic());
  }

  #cancel(key: string): boolean {
    this.#timers.delete(key);
    this.#queue.forget(key);
    return this.#scheduled.delete(key);
  }

  async #syncPod(key: string, signal: AbortSignal): Promise<void> {
    const planned = this.#scheduled.get(key);
    if (planned === undefined) return;
    const [namespace = "", name = ""] = key.split("/");
    const pod = this.#nodes.get(planned.node)?.pods.get(name, namespace);
    if (pod === undefined) return;
    const { client, clock, log } = this.#deps;
    const { uid } = planned;
    this.#recordEvent(pod, `Marking for deletion Pod ${key}`);
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
      log.info("Evicted pod from tainted node", { pod: key, node: planned.node });
    } catch (error) {
      // Deleted, or replaced by a pod of the same name.
      if (!isNotFoundOrConflict(error)) throw error;
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
    const toleration = tolerations.find((each) => tolerates(each, taint));
    if (toleration === undefined) return 0;
    const { tolerationSeconds } = toleration;
    if (tolerationSeconds === undefined) continue;
    const milliseconds = Math.max(0, Number(tolerationSeconds)) * 1000;
    shortest = Math.min(shortest ?? milliseconds, milliseconds);
  }
  return shortest;
}

function keyOf({ metadata }: Pod): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}
