/**
 * The node lifecycle controller: sets the conditions of nodes without heartbeats to Unknown, taints nodes by their
 * conditions, and evicts pods from nodes that are not ready.
 *
 *     leases, statuses ──► heartbeats ──► conditions ──► taints ──► evictions
 *                                            └──► zone disruption: limits the rate of evictions
 */

import { leaseKind } from "../../api/coordination/lease/kind.ts";
import type { Lease } from "../../api/coordination/lease/schema.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node, Taint } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { createEventRecorder, type EventRecorder } from "../../client/events/event-recorder.ts";
import { type ReflectorEvent, reflect } from "../../client/informer/reflector.ts";
import { formatTime } from "../../schema/value/time.ts";
import { isNotFoundOrConflict } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { desiredNoExecuteTaints, desiredNoScheduleTaints, hasNoExecuteTaint, readyStatus } from "./condition-taints.ts";
import { Heartbeats, unknownConditions } from "./heartbeats.ts";
import { outdatedAliases } from "./label-aliases.ts";
import { createNodeMetrics } from "./node-metrics.ts";
import { TaintEvictionController } from "./taint-eviction.ts";
import { ZoneDisruption, zoneOf } from "./zone-disruption.ts";

/** After a conflict; an event of the node is as a rule earlier. */
const CONFLICT_RETRY_MS = 1000;
const LEASES = "kube-node-lease";

export async function runNodeLifecycleController(deps: ControllerDeps): Promise<void> {
  const { client, observer, clock, random, log, signal, options, informers } = deps;
  const informerOptions = { client: observer, clock, random, log };
  await using recorder = createEventRecorder({ client, clock, random, log, component: "node-controller" });
  await using evictionRecorder = createEventRecorder({
    client,
    clock,
    random,
    log,
    component: "taint-eviction-controller",
  });
  const metrics = createNodeMetrics(deps.registry);
  await using evictions = new TaintEvictionController(deps, evictionRecorder);
  using heartbeats = new Heartbeats(
    clock,
    { graceMs: options.nodeMonitorGracePeriodMs, startupGraceMs: options.nodeStartupGracePeriodMs },
    (name) => queue.add(name),
  );
  using disruption = new ZoneDisruption(clock, (name) => queue.add(name), options.evictions, metrics);
  /** Nodes that were ready and whose pods must be marked as not ready. */
  const becameNotReady = new Set<string>();
  const nodes = informers.of(nodeKind);
  await using queue = createControllerQueue(deps, {
    name: "node_lifecycle_controller",
    workers: 4,
    backoff: { initialMs: 500, maxMs: 30_000, jitter: 0.1 },
    sync: async (name, stopping) => {
      const began = clock.monotonic();
      await syncNode(name, stopping);
      metrics.recordNodeSync((clock.monotonic() - began) / 1000);
    },
    onError: (node, error) => log.error("Failed to sync node, will retry", error, { node }),
  });

  async function syncNode(name: string, stopping: AbortSignal): Promise<void> {
    const node = nodes.get(name);
    if (node === undefined) return;
    // The sync continues with the informer's event of this change.
    const retry = (): void => queue.addAfter(name, CONFLICT_RETRY_MS);
    if ((await isSilent(node, stopping)) && (await markUnknown(deps, node, retry, stopping))) {
      if (readyStatus(node) !== "True") return;
      // A node agent that reports that its node is not ready has marked its pods itself.
      becameNotReady.add(name);
      recordNode(recorder, node, "NodeNotReady", `Node ${name} status is now: NodeNotReady`);
      return;
    }
    // The two kinds of taints are written separately, as in Kubernetes: new pods are kept away at once.
    const now = formatTime(clock.now());
    if (await updateTaints(deps, node, desiredNoScheduleTaints(node, now), retry, stopping)) return;
    if (await updateLabels(deps, node, retry, stopping)) return;
    const noExecute = desiredNoExecuteTaints(node, mayEvictPods(disruption, node), now);
    if (await updateTaints(deps, node, noExecute, retry, stopping)) {
      if (!hasNoExecuteTaint(node)) metrics.recordNodeEviction(zoneOf(node));
      return;
    }
    if (!becameNotReady.has(name)) return;
    if (readyStatus(node) !== "True") await markPodsNotReady(deps, recorder, name, stopping);
    becameNotReady.delete(name);
  }

  /** Reads the lease before the node becomes Unknown: the watch may be behind after an outage of the API server. */
  async function isSilent(node: Node, stopping: AbortSignal): Promise<boolean> {
    const { name = "" } = node.metadata ?? {};
    if (!heartbeats.isSilent(name)) return false;
    if (unknownConditions(node, "") === undefined) return true;
    const query = { namespace: LEASES, fieldSelector: `metadata.name=${name}` };
    for (const lease of (await observer.list(leaseKind, query, stopping)).items) heartbeats.observeLease(lease);
    return heartbeats.isSilent(name);
  }

  await nodes.synced.catch(() => {});
  const updateDisruption = (): void => {
    if (disruption.update(nodes.list())) for (const { metadata } of nodes.list()) queue.add(metadata?.name ?? "");
  };
  updateDisruption();
  using subscriptions = new DisposableStack();
  const unsubscribe = nodes.subscribe({
    put: (node, previous) => {
      const name = node.metadata?.name ?? "";
      heartbeats.observeStatus(node);
      if (options.evictsPods) evictions.observe(node);
      if (previous === undefined) {
        recordNode(recorder, node, "RegisteredNode", `Node ${name} event: Registered Node ${name} in Controller`);
      }
      if (previous === undefined || readyStatus(previous) !== readyStatus(node)) updateDisruption();
      if (readyStatus(node) === "True") disruption.withdraw(name);
      queue.add(name);
    },
    delete: (node) => {
      const name = node.metadata?.name ?? "";
      heartbeats.forget(name);
      evictions.forget(name);
      disruption.withdraw(name);
      becameNotReady.delete(name);
      queue.forget(name);
      recordNode(recorder, node, "RemovingNode", `Node ${name} event: Removing Node ${name} from Controller`);
      updateDisruption();
    },
  });
  subscriptions.defer(unsubscribe);
  const query = { namespace: LEASES };
  const onEvent = (event: ReflectorEvent<Lease>): void => {
    if (event.type === "replace") for (const lease of event.items) heartbeats.observeLease(lease);
    else if (event.type === "put") heartbeats.observeLease(event.object);
    else heartbeats.forgetLease(event.object.metadata?.name ?? "");
  };
  await reflect({ ...informerOptions, kind: leaseKind, query, onEvent }, signal);
}

function mayEvictPods(disruption: ZoneDisruption, node: Node): boolean {
  const ready = readyStatus(node);
  if (ready === undefined || ready === "True" || disruption.allDown) return false;
  return hasNoExecuteTaint(node) || disruption.requestEviction(node);
}

/** Returns whether conditions were changed. */
async function markUnknown(
  { client, clock, log }: ControllerDeps,
  node: Node,
  retry: () => void,
  signal: AbortSignal,
): Promise<boolean> {
  const changed = unknownConditions(node, formatTime(clock.now()));
  if (changed === undefined) return false;
  // All of them, so that they keep their order.
  const types = new Set([...(node.status?.conditions ?? []), ...changed].map(({ type }) => type));
  const conditions = [...types].map((type) =>
    [...changed, ...(node.status?.conditions ?? [])].find((condition) => condition.type === type),
  );
  const { name = "", resourceVersion } = node.metadata ?? {};
  log.warn("Node has no heartbeat", { node: name });
  const patch = { metadata: { resourceVersion }, status: { conditions } };
  await ignoreConflict(client.patch(nodeKind, { name }, "strategic", patch, { subresource: "status", signal }), retry);
  return true;
}

/** Returns whether the taints were changed. */
async function updateTaints(
  { client, log }: ControllerDeps,
  node: Node,
  taints: readonly Taint[] | undefined,
  retry: () => void,
  signal: AbortSignal,
): Promise<boolean> {
  if (taints === undefined) return false;
  const { name = "", resourceVersion } = node.metadata ?? {};
  log.v(2)?.info("Updated taints of node", { node: name, taints: taints.map(({ key }) => key) });
  const patch = { metadata: { resourceVersion }, spec: { taints: taints.length === 0 ? null : taints } };
  await ignoreConflict(client.patch(nodeKind, { name }, "merge", patch, { signal }), retry);
  return true;
}

/** Returns whether the labels were changed. */
async function updateLabels(
  { client }: ControllerDeps,
  node: Node,
  retry: () => void,
  signal: AbortSignal,
): Promise<boolean> {
  const labels = outdatedAliases(node);
  if (labels === undefined) return false;
  const { name = "" } = node.metadata ?? {};
  await ignoreConflict(client.patch(nodeKind, { name }, "strategic", { metadata: { labels } }, { signal }), retry);
  return true;
}

/** So that services do not route to pods of an unreachable node. */
async function markPodsNotReady(
  { client, clock }: ControllerDeps,
  recorder: EventRecorder,
  node: string,
  signal: AbortSignal,
): Promise<void> {
  const { items } = await client.list(podKind, { fieldSelector: `spec.nodeName=${node}` }, signal);
  for (const pod of items.filter(isReady)) {
    const { name = "", namespace, uid } = pod.metadata ?? {};
    const condition = { type: "Ready", status: "False", lastTransitionTime: formatTime(clock.now()) };
    const patch = { metadata: { uid }, status: { conditions: [condition] } };
    const involvedObject = { kind: "Pod", apiVersion: "v1", namespace, name, uid };
    recorder.record(involvedObject, "Warning", "NodeNotReady", "Node is not ready");
    await ignoreConflict(
      client.patch(podKind, { name, namespace }, "strategic", patch, { subresource: "status", signal }),
    );
  }
}

function isReady({ status }: Pod): boolean {
  return (status?.conditions ?? []).some(({ type, status: said }) => type === "Ready" && said === "True");
}

function recordNode(recorder: EventRecorder, { metadata }: Node, reason: string, message: string): void {
  const { name, uid } = metadata ?? {};
  recorder.record({ kind: "Node", apiVersion: "v1", name, uid }, "Normal", reason, message);
}

/**
 * Ignores a missing or changed object. The informer's event of a changed node starts another sync; `retry` is for
 * conflicts without one, such as those of an admission webhook.
 */
async function ignoreConflict(call: Promise<unknown>, retry?: () => void): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isNotFoundOrConflict(error)) throw error;
    retry?.();
  }
}
