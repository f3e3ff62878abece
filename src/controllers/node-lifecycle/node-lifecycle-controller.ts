/**
 * Says of nodes that are not heard of that nothing is known of them, taints nodes by their conditions, and has pods
 * driven off those that are not ready.
 *
 *     leases, statuses ──► heartbeats ──► conditions ──► taints ──► evictions
 *                                            └──► zones: how many nodes may be given up, how fast
 */

import { leaseKind } from "../../api/coordination/lease/kind.ts";
import type { Lease } from "../../api/coordination/lease/schema.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { StatusError } from "../../api/status.ts";
import { createEventRecorder, type EventRecorder } from "../../client/events/event-recorder.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { type ReflectorEvent, reflect } from "../../client/informer/reflector.ts";
import { formatTime } from "../../schema/value/time.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { ControllerDeps } from "../controller.ts";
import { isDriving, readyStatus, wantedTaints } from "./condition-taints.ts";
import { Disruption } from "./zone-disruption.ts";
import { Heartbeats, silentConditions } from "./heartbeats.ts";
import { TaintEvictions } from "./taint-eviction.ts";

export async function runNodeLifecycle(deps: ControllerDeps): Promise<void> {
  const { client, observer, clock, random, log, signal } = deps;
  const shared = { client: observer, clock, random, log };
  await using recorder = createEventRecorder({ client, clock, random, log, component: "node-controller" });
  await using evictions = new TaintEvictions(deps, recorder);
  using heartbeats = new Heartbeats(clock, (name) => queue.add(name));
  using disruption = new Disruption(clock, (name) => queue.add(name));
  /** Nodes that were ready, whose pods are yet to be marked as not ready. */
  const lost = new Set<string>();
  await using nodes = startInformer({ ...shared, kind: nodeKind }, signal);
  await using queue = new WorkQueue({
    clock,
    random,
    metrics: deps.queue,
    concurrency: 4,
    backoff: { initialMs: 500, maxMs: 30_000, jitter: 0.1 },
    work: async (name, stopping) => {
      const node = nodes.get(name);
      if (node === undefined) return;
      // The informer tells of the change, and the work goes on from there.
      if (heartbeats.isSilent(name) && (await markSilent(deps, node, stopping))) return;
      await syncTaints(deps, node, drives(disruption, node), stopping);
      if (!lost.has(name)) return;
      if (readyStatus(node) !== "True") await markPodsNotReady(deps, recorder, name, stopping);
      lost.delete(name);
    },
    onError: (node, error) => log.error("Cannot look after a node; trying again", error, { node }),
  });
  await nodes.synced.catch(() => {});
  const weigh = (): void => {
    if (disruption.update(nodes.list())) for (const { metadata } of nodes.list()) queue.add(metadata?.name ?? "");
  };
  weigh();
  nodes.subscribe({
    put: (node, previous) => {
      const name = node.metadata?.name ?? "";
      heartbeats.status(node);
      evictions.observe(node);
      if (previous === undefined) {
        recordNode(recorder, node, "RegisteredNode", `Node ${name} event: Registered Node ${name} in Controller`);
      } else if (readyStatus(previous) === "True" && readyStatus(node) !== "True") {
        lost.add(name);
        recordNode(recorder, node, "NodeNotReady", `Node ${name} status is now: NodeNotReady`);
      }
      if (previous === undefined || readyStatus(previous) !== readyStatus(node)) weigh();
      if (readyStatus(node) === "True") disruption.withdraw(name);
      queue.add(name);
    },
    delete: (node) => {
      const name = node.metadata?.name ?? "";
      heartbeats.forget(name);
      evictions.forget(name);
      disruption.withdraw(name);
      lost.delete(name);
      queue.forget(name);
      recordNode(recorder, node, "RemovingNode", `Node ${name} event: Removing Node ${name} from Controller`);
      weigh();
    },
  });
  const query = { namespace: "kube-node-lease" };
  const onEvent = (event: ReflectorEvent<Lease>): void => {
    if (event.type === "replace") for (const lease of event.items) heartbeats.lease(lease);
    else if (event.type === "put") heartbeats.lease(event.object);
    else heartbeats.forgetLease(event.object.metadata?.name ?? "");
  };
  await reflect({ ...shared, kind: leaseKind, query, onEvent }, signal);
}

function drives(disruption: Disruption, node: Node): boolean {
  const ready = readyStatus(node);
  if (ready === undefined || ready === "True" || disruption.allDown) return false;
  return isDriving(node) || disruption.mayDrive(node);
}

/** Resolves with whether there was anything to say. */
async function markSilent({ client, clock, log }: ControllerDeps, node: Node, signal: AbortSignal): Promise<boolean> {
  const conditions = silentConditions(node, formatTime(clock.now()));
  if (conditions === undefined) return false;
  const { name = "", resourceVersion } = node.metadata ?? {};
  log.warn("A node is not heard of any more", { node: name });
  const patch = { metadata: { resourceVersion }, status: { conditions } };
  await unlessOvertaken(client.patch(nodeKind, { name }, "strategic", patch, { subresource: "status", signal }));
  return true;
}

async function syncTaints(
  { client, clock, log }: ControllerDeps,
  node: Node,
  driven: boolean,
  signal: AbortSignal,
): Promise<void> {
  const taints = wantedTaints(node, driven, formatTime(clock.now()));
  if (taints === undefined) return;
  const { name = "", resourceVersion } = node.metadata ?? {};
  log.v(2)?.info("Taints a node by its conditions", { node: name, taints: taints.map(({ key }) => key) });
  const patch = { metadata: { resourceVersion }, spec: { taints: taints.length === 0 ? null : taints } };
  await unlessOvertaken(client.patch(nodeKind, { name }, "merge", patch, { signal }));
}

/** Services must not send anything to pods of a node that is lost. */
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
    const about = { kind: "Pod", apiVersion: "v1", namespace, name, uid };
    recorder.record(about, "Warning", "NodeNotReady", "Node is not ready");
    await unlessOvertaken(
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

/** Gone, or changed meanwhile: the informer tells, and the node is looked at again. */
async function unlessOvertaken(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof StatusError) || (error.status.code !== 404 && error.status.code !== 409)) throw error;
  }
}
