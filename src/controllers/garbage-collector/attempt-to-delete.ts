/**
 * Processes one object of the graph, as Kubernetes' attemptToDelete and attemptToOrphan: deletes it, orphans its
 * dependents, removes its finalizer, or verifies that it exists.
 */

import type { Kind } from "../../api/kind.ts";
import type { ObjectMeta, OwnerReference } from "../../api/meta/object-meta.ts";
import type { Client, DeleteQuery } from "../../client/client.ts";
import { metadataOnly } from "../../client/metadata-only.ts";
import type { Logger } from "../../std/log/logger.ts";
import { statusCodeOf } from "../api-errors.ts";
import { type Owner, type OwnerLookup, UnknownOwnerError } from "./owner-lookup.ts";
import { FOREGROUND, ORPHAN, type OwnershipGraph, type OwnershipNode } from "./ownership-graph.ts";

export interface CollectorDeps {
  readonly client: Client;
  readonly graph: OwnershipGraph;
  readonly owners: OwnerLookup;
  readonly log: Logger;
  /** Queues another object. */
  enqueue(uid: string): void;
}

/** The number of dependents that are orphaned at the same time. */
const CONCURRENT_ORPHANS = 8;
/** Attempts to write an object that other clients change. */
const ATTEMPTS_MAX = 5;

/** Rejects if the object must be processed again. */
export async function attemptToDelete(deps: CollectorDeps, uid: string, signal: AbortSignal): Promise<void> {
  const node = deps.graph.get(uid);
  if (node === undefined) return;
  if (node.kind === undefined) return await verifyOwner(deps, node, signal);
  if (node.phase === "terminating") return;
  if (node.phase === "foreground" && awaitBlockingDependents(deps, node)) return;
  const live = await deps.owners.readMetadata(node.kind, node, signal);
  if (live?.uid !== uid) {
    deps.graph.forget(uid);
    return;
  }
  if (node.phase === "orphaning") await orphanDependents(deps, node, signal);
  else if (node.phase === "foreground") await completeForegroundDeletion(deps, node, signal);
  else await deleteUnlessOwned(deps, node, live, signal);
}

/** Verifies an object that is only known from references: reads it from the server wherever dependents reference it. */
async function verifyOwner(deps: CollectorDeps, node: OwnershipNode, signal: AbortSignal): Promise<void> {
  const states = new Map<string, Owner["state"]>();
  const orphaned: OwnershipNode[] = [];
  let unknownKind: UnknownOwnerError | undefined;
  for (const dependent of node.dependents ?? []) {
    const reference = dependent.owners.find(({ uid }) => uid === node.uid);
    if (reference === undefined) continue;
    const key = `${reference.apiVersion}/${reference.kind}/${dependent.namespace}/${reference.name}`;
    if (states.get(key) === "absent") orphaned.push(dependent);
    if (states.has(key)) continue;
    try {
      const owner = await deps.owners.find(reference, dependent.namespace, signal);
      const live = owner.state === "impossible" ? await findAnywhere(deps, owner.kind, node.uid, signal) : owner;
      if (live.state === "present") {
        // Its deletion is reported by its watch, after the events of its dependents; that may be done by now.
        const isObserved = deps.graph.get(node.uid)?.kind !== undefined;
        if (!isObserved) deps.graph.observe(live.kind, { ...live.metadata, deletionTimestamp: undefined });
        return;
      }
      states.set(key, owner.state);
      if (owner.state === "absent") orphaned.push(dependent);
    } catch (error) {
      if (!(error instanceof UnknownOwnerError)) throw error;
      unknownKind = error;
    }
  }
  if (unknownKind !== undefined) {
    // A reference that cannot be resolved must not protect the dependents of the others.
    for (const dependent of orphaned) deps.enqueue(dependent.uid);
    throw unknownKind;
  }
  const isCertain = ![...states.values()].includes("impossible");
  if (isCertain && deps.graph.get(node.uid)?.kind === undefined) deps.graph.forget(node.uid);
}

/** Finds the namespaced owner that a cluster-scoped object references, so that the reference is reported. */
async function findAnywhere({ client }: CollectorDeps, kind: Kind, uid: string, signal: AbortSignal): Promise<Owner> {
  const { items } = await client.list(metadataOnly(kind), {}, signal);
  const metadata = items.find((item) => item.metadata?.uid === uid)?.metadata;
  return metadata === undefined ? { state: "impossible", kind } : { state: "present", kind, metadata };
}

/**
 * Queues the dependents that block the foreground deletion; returns whether there are any. Nothing is read: a dependent
 * that appears meanwhile, such as a revision that a controller creates again, is deleted when the next one is gone.
 */
function awaitBlockingDependents({ enqueue }: CollectorDeps, node: OwnershipNode): boolean {
  const blocking = [...(node.dependents ?? [])].filter(({ owners }) =>
    owners.some(({ uid, blockOwnerDeletion }) => uid === node.uid && blockOwnerDeletion === true),
  );
  // Dependents that are being deleted queue the owner when they are gone.
  for (const dependent of blocking) if (dependent.phase === "living") enqueue(dependent.uid);
  return blocking.length > 0;
}

/** Removes the finalizer, unless a dependent that blocks the deletion has appeared. */
async function completeForegroundDeletion(
  deps: CollectorDeps,
  node: OwnershipNode,
  signal: AbortSignal,
): Promise<void> {
  if (!awaitBlockingDependents(deps, node)) await removeFinalizer(deps, node, FOREGROUND, signal);
}

async function orphanDependents(deps: CollectorDeps, node: OwnershipNode, signal: AbortSignal): Promise<void> {
  const dependents = [...(node.dependents ?? [])].filter(({ kind }) => kind !== undefined);
  for (let start = 0; start < dependents.length; start += CONCURRENT_ORPHANS) {
    const batch = dependents.slice(start, start + CONCURRENT_ORPHANS);
    await Promise.all(batch.map((dependent) => removeOwners(deps, dependent, new Set([node.uid]), signal)));
  }
  await removeFinalizer(deps, node, ORPHAN, signal);
}

async function deleteUnlessOwned(
  deps: CollectorDeps,
  node: OwnershipNode,
  live: ObjectMeta,
  signal: AbortSignal,
): Promise<void> {
  const references = live.ownerReferences ?? [];
  if (references.length === 0) return;
  const owners = await classifyOwners(deps, references, node.namespace, signal);
  if (owners === undefined) return;
  const { solid, absent, waiting } = owners;
  if (solid > 0) {
    const others = new Set([...absent, ...waiting]);
    if (others.size > 0) await removeOwners(deps, node, others, signal);
    return;
  }
  if (waiting.size > 0 && (node.dependents?.size ?? 0) > 0) {
    // A cycle of owners that wait for each other is broken here.
    const isCircle = [...(node.dependents ?? [])].some(({ phase }) => phase === "foreground");
    if (isCircle) await unblockOwners(deps, node, signal);
    await deleteObject(deps, node, live, "Foreground", signal);
    return;
  }
  const finalizers = live.finalizers ?? [];
  const policy = finalizers.includes(FOREGROUND) ? "Foreground" : "Background";
  await deleteObject(deps, node, live, finalizers.includes(ORPHAN) ? "Orphan" : policy, signal);
}

interface ClassifiedOwners {
  readonly solid: number;
  readonly absent: ReadonlySet<string>;
  /** Owners in foreground deletion, which wait for this object. */
  readonly waiting: ReadonlySet<string>;
}

/** Undefined if the state of an owner cannot be determined. */
async function classifyOwners(
  deps: CollectorDeps,
  references: readonly OwnerReference[],
  namespace: string,
  signal: AbortSignal,
): Promise<ClassifiedOwners | undefined> {
  let solid = 0;
  const absent = new Set<string>();
  const waiting = new Set<string>();
  for (const reference of references) {
    const owner = await deps.owners.find(reference, namespace, signal);
    if (owner.state === "impossible") return undefined;
    if (owner.state === "absent") absent.add(reference.uid);
    else if (waitsForDependents(owner.metadata)) waiting.add(reference.uid);
    else solid++;
  }
  return { solid, absent, waiting };
}

function waitsForDependents({ deletionTimestamp, finalizers = [] }: ObjectMeta): boolean {
  return deletionTimestamp !== undefined && finalizers.includes(FOREGROUND);
}

async function deleteObject(
  deps: CollectorDeps,
  node: OwnershipNode,
  { uid, resourceVersion }: ObjectMeta,
  propagationPolicy: NonNullable<DeleteQuery["propagationPolicy"]>,
  signal: AbortSignal,
): Promise<void> {
  const { kind, namespace, name } = node;
  // Its watch reported its deletion after it was read.
  if (kind === undefined) return;
  const query = { propagationPolicy, preconditions: { uid, resourceVersion } };
  deps.log.v(2)?.info("Deleting object without owners", { kind: kind.kind, namespace, name });
  try {
    await deps.client.delete(kind, node, query, signal);
  } catch (error) {
    const code = statusCodeOf(error);
    if (code === 404) deps.graph.forget(node.uid);
    // The object changed, and so may have its owners.
    else if (code === 409) deps.enqueue(node.uid);
    else throw error;
  }
}

async function removeOwners(
  deps: CollectorDeps,
  node: OwnershipNode,
  owners: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  await patchMetadata(deps, node, signal, ({ ownerReferences = [] }) => {
    const others = ownerReferences.filter(({ uid }) => !owners.has(uid));
    return others.length === ownerReferences.length ? undefined : { ownerReferences: others };
  });
}

async function unblockOwners(deps: CollectorDeps, node: OwnershipNode, signal: AbortSignal): Promise<void> {
  await patchMetadata(deps, node, signal, ({ ownerReferences = [] }) => ({
    ownerReferences: ownerReferences.map((reference) => ({ ...reference, blockOwnerDeletion: false })),
  }));
}

async function removeFinalizer(
  deps: CollectorDeps,
  node: OwnershipNode,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  await patchMetadata(deps, node, signal, ({ finalizers = [] }) =>
    finalizers.includes(finalizer) ? { finalizers: finalizers.filter((other) => other !== finalizer) } : undefined,
  );
}

/** Does nothing if the object was deleted, even after its node was read. Rejects after repeated conflicts. */
async function patchMetadata(
  { client, owners }: CollectorDeps,
  node: OwnershipNode,
  signal: AbortSignal,
  change: (live: ObjectMeta) => Partial<ObjectMeta> | undefined,
): Promise<void> {
  const { kind } = node;
  if (kind === undefined) return;
  for (let attempt = 1; ; attempt++) {
    const live = await owners.readMetadata(kind, node, signal);
    const patch = live?.uid === node.uid ? change(live) : undefined;
    if (live === undefined || patch === undefined) return;
    const metadata = { resourceVersion: live.resourceVersion, ...patch };
    try {
      await client.patch(metadataOnly(kind), node, "merge", { metadata }, { signal });
      return;
    } catch (error) {
      const code = statusCodeOf(error);
      if (code === 404) return;
      if (code !== 409 || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}
