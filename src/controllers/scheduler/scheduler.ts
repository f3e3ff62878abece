/**
 * Gives pods that no node has yet a node: one pod at a time, through the binding subresource. A pod that fits nowhere
 * waits until something changes that may help it.
 *
 *     informers → queue of pods → select-node → bind, or wait → (node or room changes) → queue
 */

import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { StatusError } from "../../api/status.ts";
import { createEventRecorder, type EventRecorder } from "../../client/events/event-recorder.ts";
import { type Informer, startInformer } from "../../client/informer/informer.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { formatTime } from "../../schema/value/time.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { ControllerDeps } from "../controller.ts";
import { ClusterState, podKey } from "./cluster-state.ts";
import { selectNode } from "./select-node.ts";

const NAME = "default-scheduler";
/** A pod that waits is tried again this often even when nothing seems to have changed. */
const RETRY_MS = 5 * 60_000;
/** Changes within this time wake the waiting pods once. */
const WAKE_MS = 100;

export async function runScheduler(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal } = deps;
  await using recorder = createEventRecorder({ client, clock, random, log, component: NAME });
  const common = { client, clock, random, log };
  await using pods = startInformer({ ...common, kind: podKind, query: {} }, signal);
  await using nodes = startInformer({ ...common, kind: nodeKind, query: {} }, signal);
  const scheduler = new Scheduler(deps, pods, recorder);
  try {
    nodes.subscribe({
      put: (node, before) => scheduler.nodeChanged(node, before),
      delete: (node) => scheduler.nodeGone(node),
    });
    // Pods are looked at only once every node is known, so that none is turned away for want of nodes.
    await nodes.synced;
    pods.subscribe({
      put: (pod, before) => scheduler.podChanged(pod, before),
      delete: (pod) => scheduler.podGone(pod),
    });
    await pods.synced;
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await scheduler.stop();
  }
}

class Scheduler {
  readonly #queue: WorkQueue;
  readonly #deps: ControllerDeps;
  readonly #pods: Informer<Pod>;
  readonly #recorder: EventRecorder;
  readonly #state = new ClusterState();
  /** Pods that fit nowhere when last tried. As many as there are pending pods. */
  readonly #waiting = new Set<string>();
  #wake: { cancel(): void } | undefined;

  constructor(deps: ControllerDeps, pods: Informer<Pod>, recorder: EventRecorder) {
    this.#deps = deps;
    this.#pods = pods;
    this.#recorder = recorder;
    this.#queue = new WorkQueue({
      clock: deps.clock,
      random: deps.random,
      metrics: deps.queue,
      // One at a time: each decision must see the one before.
      concurrency: 1,
      backoff: { initialMs: 1_000, maxMs: 10_000, jitter: 0.1 },
      work: (key) => this.#schedule(key),
      onError: (key, error) => deps.log.error("Cannot schedule the pod; trying again", error, { pod: key }),
    });
  }

  podChanged(pod: Pod, before: Pod | undefined): void {
    if (this.#state.putPod(pod)) this.#wakeWaiting();
    // A pod that waits is not tried again for what only its status says, which the scheduler writes itself.
    const waits = this.#waiting.has(podKey(pod)) && deepEqual(pod.spec, before?.spec);
    if (isPending(pod) && !waits) this.#queue.add(podKey(pod));
  }

  podGone(pod: Pod): void {
    this.#waiting.delete(podKey(pod));
    if (this.#state.deletePod(pod)) this.#wakeWaiting();
  }

  /** Heartbeats change a node all the time; the waiting are woken only by what may help them. */
  nodeChanged(node: Node, before: Node | undefined): void {
    this.#state.putNode(node);
    if (before === undefined || !deepEqual(decisive(node), decisive(before))) this.#wakeWaiting();
  }

  nodeGone(node: Node): void {
    this.#state.deleteNode(node);
  }

  async stop(): Promise<void> {
    this.#wake?.cancel();
    await this.#queue[Symbol.asyncDispose]();
  }

  #wakeWaiting(): void {
    if (this.#waiting.size === 0 || this.#wake !== undefined) return;
    this.#wake = this.#deps.clock.timer(WAKE_MS, () => {
      this.#wake = undefined;
      const woken = [...this.#waiting];
      // First: a pod may be tried, and have to wait again, before add returns.
      this.#waiting.clear();
      for (const key of woken) this.#queue.add(key);
    });
  }

  async #schedule(key: string): Promise<void> {
    const [namespace = "", name = ""] = key.split("/");
    const pod = this.#pods.get(name, namespace);
    if (pod === undefined || !isPending(pod)) return;
    const selection = selectNode(pod, this.#state.infos());
    if (selection.node === undefined) await this.#wait(pod, selection.message);
    else await this.#bind(pod, selection.node);
  }

  async #bind(pod: Pod, node: string): Promise<void> {
    const { name = "", namespace, uid } = pod.metadata ?? {};
    this.#state.assume(pod, node);
    try {
      await this.#deps.client.createSubresource(podKind, { name, namespace }, "binding", {
        apiVersion: "v1",
        kind: "Binding",
        metadata: { name, namespace, uid },
        target: { apiVersion: "v1", kind: "Node", name: node },
      });
    } catch (error) {
      this.#state.deletePod(pod);
      // Gone, or bound by somebody else: the next event says which.
      if (error instanceof StatusError && [404, 409].includes(error.status.code)) return;
      throw error;
    }
    this.#deps.log.v(3)?.info("Bound the pod", { pod: podKey(pod), node });
    this.#recorder.record(reference(pod), "Normal", "Scheduled", `Successfully assigned ${podKey(pod)} to ${node}`);
  }

  async #wait(pod: Pod, message: string): Promise<void> {
    const key = podKey(pod);
    this.#waiting.add(key);
    this.#queue.addAfter(key, RETRY_MS);
    this.#recorder.record(reference(pod), "Warning", "FailedScheduling", message);
    const known = pod.status?.conditions?.find((condition) => condition.type === "PodScheduled");
    if (known?.status === "False" && known.reason === "Unschedulable" && known.message === message) return;
    const lastTransitionTime = known?.status === "False" ? known.lastTransitionTime : formatTime(this.#deps.clock.now());
    const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message, lastTransitionTime };
    const { name = "", namespace } = pod.metadata ?? {};
    const patch = { status: { conditions: [condition] } };
    try {
      await this.#deps.client.patch(podKind, { name, namespace }, "strategic", patch, { subresource: "status" });
    } catch (error) {
      if (error instanceof StatusError && error.status.code === 404) return;
      throw error;
    }
  }
}

/** No node yet, meant for this scheduler, and nothing that holds it back. */
function isPending(pod: Pod): boolean {
  return (
    !pod.spec?.nodeName &&
    (pod.spec?.schedulerName ?? NAME) === NAME &&
    (pod.spec?.schedulingGates ?? []).length === 0 &&
    pod.metadata?.deletionTimestamp === undefined &&
    pod.status?.phase !== "Succeeded" &&
    pod.status?.phase !== "Failed"
  );
}

/** What of a node decides whether a pod fits. */
function decisive({ metadata, spec, status }: Node): unknown {
  const ready = status?.conditions?.find((condition) => condition.type === "Ready")?.status;
  return { labels: metadata?.labels, spec, allocatable: status?.allocatable, ready };
}

function reference(pod: Pod) {
  const { name, namespace, uid, resourceVersion } = pod.metadata ?? {};
  return { apiVersion: "v1", kind: "Pod", name, namespace, uid, resourceVersion };
}
