/**
 * The scheduler: binds pending pods to nodes, as Kubernetes 1.33's does. Decisions are made one at a time, since each
 * depends on the previous ones; bindings run in the background.
 *
 *     informers → cache and queue → select a node → assume → reserve → bind
 *                              ↑                 ↘ preempt, or wait for an event
 */

import { hostname } from "node:os";
import type { Pod } from "../api/core/pod/schema.ts";
import type { Client, Transport } from "../client/client.ts";
import { createSeriesRecorder, type SeriesRecorder } from "../client/events/series-recorder.ts";
import { Semaphore } from "../std/async/semaphore.ts";
import { TimeSlice } from "../std/async/time-slice.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";
import { ClusterCache } from "./cache/cluster-cache.ts";
import type { NodeInfo } from "./cache/node-info.ts";
import { Nominator } from "./cache/nominator.ts";
import { isAssigned, PodInfo } from "./cache/pod-info.ts";
import { DEFAULT_SCHEDULER_NAME, defaultConfiguration, type SchedulerConfiguration } from "./config/configuration.ts";
import { defaultFeatures, type SchedulerFeatures } from "./config/features.ts";
import { createExtenders } from "./extender/create-extenders.ts";
import type { Extender } from "./extender/extender.ts";
import { fitMessage } from "./framework/fit-error.ts";
import type { Framework } from "./framework/framework.ts";
import type { Cycle } from "./framework/plugin.ts";
import type { Rejection } from "./framework/rejection.ts";
import type { SchedulerMetrics } from "./metrics.ts";
import { type Diagnosis, NodeSelector } from "./node-selector.ts";
import type { DynamicResources } from "./plugins/dynamic-resources/open-dynamic-resources.ts";
import { writeUnschedulable } from "./pod-status.ts";
import { Evictions } from "./preemption/evictions.ts";
import { Profiles } from "./profiles.ts";
import type { QueuedPod } from "./queue/queued-pod.ts";
import { SchedulingQueue } from "./queue/scheduling-queue.ts";
import { ClusterInformers, type InformerSource } from "./watch/cluster-informers.ts";
import { EventHandlers } from "./watch/event-handlers.ts";

export interface SchedulerDeps {
  readonly client: Client;
  readonly informers: InformerSource;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Kubernetes' default configuration when absent. */
  readonly config?: SchedulerConfiguration | undefined;
  /** All when absent. */
  readonly features?: SchedulerFeatures | undefined;
  readonly metrics?: SchedulerMetrics | undefined;
  /** Connects to an extender in place of the network. */
  readonly extenderTransport?: ((urlPrefix: string) => Transport) | undefined;
  readonly signal: AbortSignal;
}

/** Runs until the signal aborts, then finishes the bindings in progress. */
export async function runScheduler(deps: SchedulerDeps): Promise<void> {
  await using recorder = createSeriesRecorder({ ...deps, instance: `${DEFAULT_SCHEDULER_NAME}-${hostname()}` });
  await using extenders = await createExtenders(deps.config?.extenders ?? [], deps);
  await using dynamicResources = await loadDynamicResources(deps);
  await new Scheduler(deps, recorder, extenders.list, dynamicResources).run();
}

async function loadDynamicResources({ features, ...deps }: SchedulerDeps): Promise<DynamicResources | undefined> {
  if (features?.dynamicResources === undefined) return undefined;
  const { openDynamicResources } = await import("./plugins/dynamic-resources/open-dynamic-resources.ts");
  return await openDynamicResources({ ...deps, features: features.dynamicResources });
}

/** The maximum number of requests that bind pods at the same time. */
const BINDING_REQUESTS_MAX = 50;

interface Attempt {
  readonly queued: QueuedPod;
  /** On the monotonic clock. */
  readonly beganAt: number;
  /** The time until the node was selected. */
  algorithmMs: number;
}

interface Failure {
  readonly reason: "Unschedulable" | "SchedulerError";
  readonly message: string;
  /** Undefined keeps the nomination, empty clears it. */
  readonly nominatedNodeName: string | undefined;
  readonly diagnosis?: Diagnosis | undefined;
}

class Scheduler {
  readonly #deps: SchedulerDeps;
  readonly #recorder: SeriesRecorder;
  readonly #extenders: readonly Extender[];
  readonly #dynamicResources: DynamicResources | undefined;
  readonly #informers: ClusterInformers;
  readonly #cache: ClusterCache;
  readonly #nominator = new Nominator();
  readonly #evictions: Evictions;
  readonly #profiles: Profiles;
  readonly #queue: SchedulingQueue;
  readonly #selector: NodeSelector;
  readonly #bindingRequests = new Semaphore(BINDING_REQUESTS_MAX);
  readonly #volumeListeners = new Set<() => void>();
  /** The bindings in progress by uid, with what ends their wait for volumes. Bounded by the number of pending pods. */
  readonly #bindings = new Map<string, { readonly end: AbortController; readonly done: Promise<void> }>();

  constructor(
    deps: SchedulerDeps,
    recorder: SeriesRecorder,
    extenders: readonly Extender[],
    dynamicResources: DynamicResources | undefined,
  ) {
    this.#deps = deps;
    this.#dynamicResources = dynamicResources;
    this.#recorder = recorder;
    this.#extenders = extenders;
    const { client, clock, random, log, signal, config = defaultConfiguration, features = defaultFeatures } = deps;
    this.#informers = new ClusterInformers(deps.informers);
    this.#cache = new ClusterCache(this.#informers.namespaceLabels());
    this.#evictions = new Evictions({
      client,
      clock,
      log,
      signal,
      nominator: this.#nominator,
      onEvict: (count) => deps.metrics?.preemptionAttempted(count),
      onEvicted: (isSuccess, milliseconds) => deps.metrics?.preemptionEnded(isSuccess, milliseconds),
      recordPreempted: (victim, preemptor, nodeName) => this.#recordPreempted(victim, preemptor, nodeName),
      rejectBinding: (uid) => this.#rejectBinding(uid),
      activate: (uid) => this.#queue.activate(uid),
      retryLater: (uid) => this.#queue.retryAfterBackoff(uid),
    });
    const handle = {
      client,
      clock,
      random,
      log,
      cache: this.#cache,
      nominator: this.#nominator,
      listers: this.#informers.listers(),
      onVolumeChange: (callback: () => void, until: AbortSignal) => this.#onVolumeChange(callback, until),
      onVolumeError: deps.metrics?.volumeStageFailed,
    };
    const pluginDeps = {
      handle,
      extenders,
      evictions: this.#evictions,
      features,
      dynamicResources: dynamicResources?.plugin,
    };
    this.#profiles = new Profiles(config, pluginDeps, this.#nominator, deps.metrics?.framework);
    this.#queue = new SchedulingQueue({
      clock,
      initialBackoffMs: config.podInitialBackoffSeconds * 1000,
      maxBackoffMs: config.podMaxBackoffSeconds * 1000,
      unschedulableMaxMs: config.unschedulableMaxMs,
      popsFromBackoff: features.popFromBackoff,
      onQueued: deps.metrics?.podQueued,
      onEventHandled: deps.metrics?.eventHandled,
      preEnqueue: (pod) => this.#profiles.of(pod)?.preEnqueue(pod),
      interestedPlugins: (pod, event, rejectedBy) => this.#profiles.interestedPlugins(pod, event, rejectedBy),
      isRegistered: (event) => this.#profiles.isRegistered(event),
    });
    deps.metrics?.observeQueue(this.#queue);
    deps.metrics?.observeState({ cache: this.#cache, bindings: () => this.#bindings.size });
    this.#selector = new NodeSelector({ cache: this.#cache, extenders, random, signal });
  }

  async run(): Promise<void> {
    const { signal } = this.#deps;
    const handlers = new EventHandlers({
      cache: this.#cache,
      queue: this.#queue,
      nominator: this.#nominator,
      isResponsible: (name) => this.#profiles.has(name),
      volumeChanged: () => {
        for (const listener of this.#volumeListeners) listener();
      },
    });
    const stops: (() => void)[] = [];
    try {
      stops.push(handlers.subscribe(this.#informers));
      if (this.#dynamicResources !== undefined) {
        stops.push(this.#dynamicResources.subscribe((event) => this.#queue.move(event)));
        await this.#dynamicResources.synced;
      }
      await this.#informers.othersSynced();
      await this.#informers.pods.synced;
      stops.push(handlers.subscribePods(this.#informers.pods));
      await this.#scheduleAll();
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      for (const stop of stops) stop();
      this.#queue[Symbol.dispose]();
      await Promise.all([...this.#bindings.values()].map(({ done }) => done));
      await this.#evictions.drain();
    }
  }

  async #scheduleAll(): Promise<void> {
    const { signal, log } = this.#deps;
    const slice = new TimeSlice();
    while (!signal.aborted) {
      const queued = this.#queue.pop();
      if (queued === undefined) {
        await this.#queue.wait(signal);
        continue;
      }
      const attempt = { queued, beganAt: this.#deps.clock.monotonic(), algorithmMs: 0 };
      try {
        await this.#scheduleOne(attempt);
      } catch (error) {
        if (signal.aborted) break;
        log.error("Failed to schedule pod, will retry", error, { pod: queued.info.key });
        const message = error instanceof Error ? error.message : String(error);
        await this.#fail(attempt, { reason: "SchedulerError", message, nominatedNodeName: "" });
      }
      await slice.yield();
    }
  }

  async #scheduleOne(attempt: Attempt): Promise<void> {
    const { info } = attempt.queued;
    const framework = this.#profiles.of(info);
    if (framework === undefined || this.#skips(info)) {
      this.#queue.done(info.uid);
      return;
    }
    const cycle: Cycle = { pod: info, filters: new Map(), states: new Map() };
    const selection = await this.#selector.select(framework, cycle);
    attempt.algorithmMs = this.#deps.clock.monotonic() - attempt.beganAt;
    if (selection.node !== undefined) return await this.#assume(attempt, framework, cycle, selection.node);
    if ("error" in selection) {
      const reason = selection.isError ? "SchedulerError" : "Unschedulable";
      return await this.#fail(attempt, { reason, message: selection.error, nominatedNodeName: "" });
    }
    const { diagnosis } = selection;
    const result = await framework.postFilter(cycle, diagnosis.rejections);
    const message = fitMessage({
      nodeCount: this.#cache.nodes().length,
      rejections: diagnosis.rejections,
      preFilterMessage: diagnosis.preFilterMessage,
      postFilterMessage: result?.rejection?.reasons.join(", ") ?? "",
    });
    const nominatedNodeName = result?.nominatedNodeName;
    await this.#fail(attempt, { reason: "Unschedulable", message, nominatedNodeName, diagnosis });
  }

  /** Pods that are being deleted or bound. */
  #skips({ pod, key }: PodInfo): boolean {
    if (pod.metadata?.deletionTimestamp !== undefined) {
      this.#record(pod, "Warning", "FailedScheduling", "Scheduling", `skip schedule deleting pod: ${key}`);
      return true;
    }
    return this.#cache.isAssumed(pod);
  }

  async #assume(attempt: Attempt, framework: Framework, cycle: Cycle, node: NodeInfo): Promise<void> {
    const { info } = attempt.queued;
    this.#cache.assume(info, node.name);
    this.#nominator.delete(info.uid);
    const rejection = framework.reserve(cycle, node);
    if (rejection !== undefined) {
      this.#forget(info);
      return await this.#fail(attempt, failureOf(rejection));
    }
    this.#queue.done(info.uid);
    const end = new AbortController();
    const done = this.#bind(attempt, framework, cycle, node, AbortSignal.any([end.signal, this.#deps.signal]))
      .catch((error: unknown) => {
        if (!this.#deps.signal.aborted) this.#deps.log.error("Failed to bind pod", error, { pod: info.key });
      })
      .finally(() => this.#bindings.delete(info.uid));
    this.#bindings.set(info.uid, { end, done });
  }

  async #bind(
    attempt: Attempt,
    framework: Framework,
    cycle: Cycle,
    node: NodeInfo,
    signal: AbortSignal,
  ): Promise<void> {
    const { queued, beganAt, algorithmMs } = attempt;
    const { info } = queued;
    const rejection =
      (await framework.preBind(cycle, node, signal)) ??
      (await this.#bindingRequests.run(() => this.#bindOne(framework, cycle, node.name, signal), signal));
    if (rejection === undefined) {
      this.#deps.log.v(3)?.info("Bound pod", { pod: info.key, node: node.name });
      const note = `Successfully assigned ${info.key} to ${node.name}`;
      this.#record(info.pod, "Normal", "Scheduled", "Binding", note);
      const now = this.#deps.clock.monotonic();
      this.#deps.metrics?.attemptEnded("scheduled", profileOf(info.pod), now - beganAt, algorithmMs);
      this.#deps.metrics?.podScheduled(queued, now - (queued.firstActiveAt ?? beganAt));
      return;
    }
    framework.unreserve(cycle);
    this.#forget(info);
    if (this.#deps.signal.aborted) return;
    await this.#fail(attempt, failureOf(rejection));
  }

  async #bindOne(
    framework: Framework,
    cycle: Cycle,
    nodeName: string,
    signal: AbortSignal,
  ): Promise<Rejection | undefined> {
    const extender = this.#extenders.find(({ bind, isInterested }) => bind !== undefined && isInterested(cycle.pod));
    if (extender?.bind === undefined) return await framework.bind(cycle, nodeName, signal);
    try {
      await extender.bind(cycle.pod, nodeName, signal);
      return undefined;
    } catch (error) {
      return { code: "Error", plugin: "Extender", reasons: [(error as Error).message] };
    }
  }

  /** The pod does not use the node any more, unless the server has bound it. */
  #forget({ pod, uid }: PodInfo): void {
    const cached = this.#cache.pod(uid);
    if (cached?.assumed !== true) return;
    this.#cache.deletePod(uid);
    const assumed = { ...pod, spec: { containers: [], ...pod.spec, nodeName: cached.nodeName } };
    this.#queue.move(
      { resource: "AssignedPod", action: "Delete", before: assumed, after: undefined },
      (other) => other.uid !== uid,
    );
  }

  /** Returns the pod to the queue, and reports why it is pending. */
  async #fail(
    { queued, beganAt, algorithmMs }: Attempt,
    { reason, message, nominatedNodeName, diagnosis }: Failure,
  ): Promise<void> {
    const { name, namespace, uid, pod } = queued.info;
    const result = reason === "SchedulerError" ? "error" : "unschedulable";
    const attemptMs = this.#deps.clock.monotonic() - beganAt;
    this.#deps.metrics?.attemptEnded(result, profileOf(pod), attemptMs, algorithmMs);
    queued.rejectedBy = diagnosis?.rejectedBy ?? new Set();
    queued.pendingOn = diagnosis?.pendingOn ?? new Set();
    const current = this.#informers.pods.get(name, namespace);
    if (current === undefined || isAssigned(current)) {
      this.#queue.done(uid);
      if (current !== undefined) return;
    } else {
      queued.info = new PodInfo(current);
      const nominated = nominatedNodeName ?? current.status?.nominatedNodeName ?? "";
      this.#nominator.nominate(queued.info, nominated);
      this.#queue.addUnschedulable(queued);
    }
    this.#record(pod, "Warning", "FailedScheduling", "Scheduling", message);
    try {
      await writeUnschedulable(this.#deps, pod, { reason, message }, nominatedNodeName);
    } catch (error) {
      if (this.#deps.signal.aborted) return;
      this.#deps.log.error("Failed to write the condition of a pod", error, { pod: queued.info.key });
    }
  }

  #rejectBinding(uid: string): boolean {
    const binding = this.#bindings.get(uid);
    binding?.end.abort(new Error("preempted"));
    return binding !== undefined;
  }

  #onVolumeChange(callback: () => void, until: AbortSignal): void {
    this.#volumeListeners.add(callback);
    until.addEventListener("abort", () => this.#volumeListeners.delete(callback), { once: true });
  }

  #recordPreempted(victim: Pod, preemptor: Pod, nodeName: string): void {
    const note = `Preempted by pod ${preemptor.metadata?.uid ?? ""} on node ${nodeName}`;
    this.#recorder.record({
      regarding: referenceOf(victim),
      related: referenceOf(preemptor),
      type: "Normal",
      reason: "Preempted",
      action: "Preempting",
      note,
      controller: profileOf(preemptor),
    });
  }

  #record(pod: Pod, type: "Normal" | "Warning", reason: string, action: string, note: string): void {
    this.#recorder.record({ regarding: referenceOf(pod), type, reason, action, note, controller: profileOf(pod) });
  }
}

function failureOf({ code, reasons }: Rejection): Failure {
  const reason = code === "Error" ? "SchedulerError" : "Unschedulable";
  return { reason, message: reasons.join(", "), nominatedNodeName: "" };
}

function profileOf({ spec }: Pod): string {
  return spec?.schedulerName ?? DEFAULT_SCHEDULER_NAME;
}

function referenceOf({ metadata }: Pod) {
  const { name, namespace, uid, resourceVersion } = metadata ?? {};
  return { apiVersion: "v1", kind: "Pod", name, namespace, uid, resourceVersion };
}
