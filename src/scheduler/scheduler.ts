/**
 * The scheduler: binds pending pods to nodes, one at a time. A pod that fits no node waits until a change may make it
 * schedulable.
 *
 *     informers → queue of pods → selectNode → bind, or wait → (node changes or resources become free) → queue
 */

import { nodeKind } from "../api/core/node/kind.ts";
import type { Node } from "../api/core/node/schema.ts";
import { podKind } from "../api/core/pod/kind.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import { StatusError } from "../api/status.ts";
import type { Client } from "../client/client.ts";
import { createEventRecorder, type EventRecorder } from "../client/events/event-recorder.ts";
import { type Informer, startInformer } from "../client/informer/informer.ts";
import { deepEqual } from "../schema/value/equal.ts";
import { formatTime } from "../schema/value/time.ts";
import { WorkQueue } from "../std/async/work-queue.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import type { QueueMetrics } from "../std/metrics/queue-metrics.ts";
import type { Clock } from "../std/time/clock.ts";
import { ClusterState, podKey } from "./cluster-state.ts";
import { selectNode } from "./select-node.ts";

const NAME = "default-scheduler";
/** The interval of retries without such a change. */
const UNSCHEDULABLE_RETRY_MS = 5 * 60_000;
/** Changes within this time retry the unschedulable pods once. */
const RETRY_DELAY_MS = 100;

export interface SchedulerDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly queue?: QueueMetrics | undefined;
  readonly signal: AbortSignal;
}

export async function runScheduler(deps: SchedulerDeps): Promise<void> {
  const { client, clock, random, log, signal } = deps;
  await using recorder = createEventRecorder({ client, clock, random, log, component: NAME });
  const common = { client, clock, random, log };
  await using pods = startInformer({ ...common, kind: podKind, query: {} }, signal);
  await using nodes = startInformer({ ...common, kind: nodeKind, query: {} }, signal);
  const scheduler = new Scheduler(deps, pods, recorder);
  try {
    nodes.subscribe({
      put: (node, before) => scheduler.nodeChanged(node, before),
      delete: (node) => scheduler.nodeDeleted(node),
    });
    // Pods are subscribed after all nodes are listed, so that no pod is found unschedulable for missing nodes.
    await nodes.synced;
    pods.subscribe({
      put: (pod, before) => scheduler.podChanged(pod, before),
      delete: (pod) => scheduler.podDeleted(pod),
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
  readonly #deps: SchedulerDeps;
  readonly #pods: Informer<Pod>;
  readonly #recorder: EventRecorder;
  readonly #state = new ClusterState();
  /** Pods that did not fit any node. Bounded by the number of pending pods. */
  readonly #unschedulable = new Set<string>();
  #retryTimer: { cancel(): void } | undefined;

  constructor(deps: SchedulerDeps, pods: Informer<Pod>, recorder: EventRecorder) {
    this.#deps = deps;
    this.#pods = pods;
    this.#recorder = recorder;
    this.#queue = new WorkQueue({
      clock: deps.clock,
      random: deps.random,
      metrics: deps.queue,
      // Sequential, since each decision depends on the previous one.
      concurrency: 1,
      backoff: { initialMs: 1_000, maxMs: 10_000, jitter: 0.1 },
      work: (key) => this.#syncPod(key),
      onError: (key, error) => deps.log.error("Failed to schedule pod, will retry", error, { pod: key }),
    });
  }

  podChanged(pod: Pod, before: Pod | undefined): void {
    if (this.#state.putPod(pod)) this.#retryUnschedulable();
    // Status updates, which the scheduler itself makes, do not retry an unschedulable pod.
    const waits = this.#unschedulable.has(podKey(pod)) && deepEqual(pod.spec, before?.spec);
    if (isPending(pod) && !waits) this.#queue.add(podKey(pod));
  }

  podDeleted(pod: Pod): void {
    this.#unschedulable.delete(podKey(pod));
    if (this.#state.deletePod(pod)) this.#retryUnschedulable();
  }

  /** Heartbeats change nodes frequently; only relevant changes retry unschedulable pods. */
  nodeChanged(node: Node, before: Node | undefined): void {
    this.#state.putNode(node);
    if (before === undefined || !deepEqual(schedulingProperties(node), schedulingProperties(before)))
      this.#retryUnschedulable();
  }

  nodeDeleted(node: Node): void {
    this.#state.deleteNode(node);
  }

  async stop(): Promise<void> {
    this.#retryTimer?.cancel();
    await this.#queue[Symbol.asyncDispose]();
  }

  #retryUnschedulable(): void {
    if (this.#unschedulable.size === 0 || this.#retryTimer !== undefined) return;
    this.#retryTimer = this.#deps.clock.timer(RETRY_DELAY_MS, () => {
      this.#retryTimer = undefined;
      const woken = [...this.#unschedulable];
      // Cleared first: a pod may be found unschedulable again before add() returns.
      this.#unschedulable.clear();
      for (const key of woken) this.#queue.add(key);
    });
  }

  async #syncPod(key: string): Promise<void> {
    const [namespace = "", name = ""] = key.split("/");
    const pod = this.#pods.get(name, namespace);
    if (pod === undefined || !isPending(pod)) return;
    const selection = selectNode(pod, this.#state.nodeInfos());
    if (selection.node === undefined) await this.#markUnschedulable(pod, selection.message);
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
      // Deleted, or bound by another client; the next event shows which.
      if (error instanceof StatusError && [404, 409].includes(error.status.code)) return;
      throw error;
    }
    this.#deps.log.v(3)?.info("Bound pod", { pod: podKey(pod), node });
    this.#recorder.record(
      objectReference(pod),
      "Normal",
      "Scheduled",
      `Successfully assigned ${podKey(pod)} to ${node}`,
    );
  }

  async #markUnschedulable(pod: Pod, message: string): Promise<void> {
    const key = podKey(pod);
    this.#unschedulable.add(key);
    this.#queue.addAfter(key, UNSCHEDULABLE_RETRY_MS);
    this.#recorder.record(objectReference(pod), "Warning", "FailedScheduling", message);
    const known = pod.status?.conditions?.find((condition) => condition.type === "PodScheduled");
    if (known?.status === "False" && known.reason === "Unschedulable" && known.message === message) return;
    const lastTransitionTime =
      known?.status === "False" ? known.lastTransitionTime : formatTime(this.#deps.clock.now());
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

/** Not bound, assigned to this scheduler, not gated and not terminated. */
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

/** The properties of a node that decide whether pods fit. */
function schedulingProperties({ metadata, spec, status }: Node): unknown {
  const ready = status?.conditions?.find((condition) => condition.type === "Ready")?.status;
  return { labels: metadata?.labels, spec, allocatable: status?.allocatable, ready };
}

function objectReference(pod: Pod) {
  const { name, namespace, uid, resourceVersion } = pod.metadata ?? {};
  return { apiVersion: "v1", kind: "Pod", name, namespace, uid, resourceVersion };
}
