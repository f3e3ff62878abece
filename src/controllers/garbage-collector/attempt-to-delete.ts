/** What is done about one object of the graph: delete it, let go of what it owns, let it go, or find out if it is. */
import type { Kind } from "../../api/kind.ts";
import type { ObjectMeta, OwnerReference } from "../../api/meta/object-meta.ts";
import { StatusError } from "../../api/status.ts";
import type { Client, DeleteQuery } from "../../client/client.ts";
import { metadataOnly } from "../../client/metadata-only.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { OwnerLookup } from "./owner-lookup.ts";
import { FOREGROUND, ORPHAN, type OwnershipGraph, type OwnershipNode } from "./ownership-graph.ts";

export interface CollectorDeps {
  readonly client: Client;
  readonly graph: OwnershipGraph;
  readonly owners: OwnerLookup;
  readonly log: Logger;
  /** Another object is to be looked at. */
  look(uid: string): void;
}

/** A node that the server has told of. */
type Known = OwnershipNode & { readonly kind: Kind };

/** Dependents that are let go of at the same time. */
const ORPHANED_AT_ONCE = 8;
/** How often a change is tried that others come in between of. */
const ATTEMPTS_MAX = 5;

/** Rejects when the object has to be looked at again. */
export async function collect(deps: CollectorDeps, uid: string, signal: AbortSignal): Promise<void> {
  const node = deps.graph.get(uid);
  if (node === undefined) return;
  if (!isKnown(node)) return await verify(deps, node, signal);
  if (node.phase === "leaving") return;
  const live = await deps.owners.live(node.kind, node, signal);
  if (live?.uid !== uid) {
    deps.graph.forget(uid);
    return;
  }
  if (node.phase === "orphaning") await orphan(deps, node, signal);
  else if (node.phase === "foreground") await letGoWhenAlone(deps, node, signal);
  else await deleteUnlessOwned(deps, node, live, signal);
}

function isKnown(node: OwnershipNode): node is Known {
  return node.kind !== undefined;
}

/** Nobody told of the object but those that name it as their owner: asks for it wherever they say that it is. */
async function verify(deps: CollectorDeps, node: OwnershipNode, signal: AbortSignal): Promise<void> {
  const asked = new Set<string>();
  let isCertain = true;
  for (const dependent of node.dependents ?? []) {
    const reference = dependent.owners.find(({ uid }) => uid === node.uid);
    if (reference === undefined) continue;
    const place = `${reference.apiVersion}/${reference.kind}/${dependent.namespace}/${reference.name}`;
    if (asked.has(place)) continue;
    asked.add(place);
    const owner = await deps.owners.find(reference, dependent.namespace, signal);
    if (owner.state === "present") {
      // That it goes is for its watch to tell: by then those have told that were there before.
      deps.graph.observe(owner.kind, { ...owner.metadata, deletionTimestamp: undefined });
      return;
    }
    if (owner.state === "impossible") isCertain = false;
  }
  if (isCertain && deps.graph.get(node.uid)?.kind === undefined) deps.graph.forget(node.uid);
}

/** The owner is deleted in the foreground: it stays until nothing is left that blocks it. */
async function letGoWhenAlone(deps: CollectorDeps, node: Known, signal: AbortSignal): Promise<void> {
  const blocking = [...(node.dependents ?? [])].filter(({ owners }) =>
    owners.some(({ uid, blockOwnerDeletion }) => uid === node.uid && blockOwnerDeletion === true),
  );
  if (blocking.length === 0) await removeFinalizer(deps, node, FOREGROUND, signal);
  // Those on their way tell when they are gone.
  for (const dependent of blocking) if (dependent.phase === "living") deps.look(dependent.uid);
}

async function orphan(deps: CollectorDeps, node: Known, signal: AbortSignal): Promise<void> {
  const dependents = [...(node.dependents ?? [])].filter(isKnown);
  for (let start = 0; start < dependents.length; start += ORPHANED_AT_ONCE) {
    const some = dependents.slice(start, start + ORPHANED_AT_ONCE);
    await Promise.all(some.map((dependent) => disown(deps, dependent, new Set([node.uid]), signal)));
  }
  await removeFinalizer(deps, node, ORPHAN, signal);
}

async function deleteUnlessOwned(
  deps: CollectorDeps,
  node: Known,
  live: ObjectMeta,
  signal: AbortSignal,
): Promise<void> {
  const references = live.ownerReferences ?? [];
  if (references.length === 0) return;
  const sorted = await sortOwners(deps, references, node.namespace, signal);
  if (sorted === undefined) return;
  const { solid, absent, waiting } = sorted;
  if (solid > 0) {
    const others = new Set([...absent, ...waiting]);
    if (others.size > 0) await disown(deps, node, others, signal);
    return;
  }
  if (waiting.size > 0 && (node.dependents?.size ?? 0) > 0) {
    // A circle in which all wait for each other is broken where it is noticed.
    const isCircle = [...(node.dependents ?? [])].some(({ phase }) => phase === "foreground");
    if (isCircle) await unblockOwners(deps, node, signal);
    await deleteObject(deps, node, live, "Foreground", signal);
    return;
  }
  const finalizers = live.finalizers ?? [];
  const asked = finalizers.includes(FOREGROUND) ? "Foreground" : "Background";
  await deleteObject(deps, node, live, finalizers.includes(ORPHAN) ? "Orphan" : asked, signal);
}

interface SortedOwners {
  readonly solid: number;
  readonly absent: ReadonlySet<string>;
  /** They wait for this very object to go. */
  readonly waiting: ReadonlySet<string>;
}

/** Undefined when nothing can be said of one of them. */
async function sortOwners(
  deps: CollectorDeps,
  references: readonly OwnerReference[],
  namespace: string,
  signal: AbortSignal,
): Promise<SortedOwners | undefined> {
  let solid = 0;
  const absent = new Set<string>();
  const waiting = new Set<string>();
  for (const reference of references) {
    const owner = await deps.owners.find(reference, namespace, signal);
    if (owner.state === "impossible") return undefined;
    if (owner.state === "absent") absent.add(reference.uid);
    else if (isWaiting(owner.metadata)) waiting.add(reference.uid);
    else solid++;
  }
  return { solid, absent, waiting };
}

function isWaiting({ deletionTimestamp, finalizers = [] }: ObjectMeta): boolean {
  return deletionTimestamp !== undefined && finalizers.includes(FOREGROUND);
}

async function deleteObject(
  deps: CollectorDeps,
  node: Known,
  { uid, resourceVersion }: ObjectMeta,
  propagationPolicy: NonNullable<DeleteQuery["propagationPolicy"]>,
  signal: AbortSignal,
): Promise<void> {
  const query = { propagationPolicy, preconditions: { uid, resourceVersion } };
  deps.log
    .v(2)
    ?.info("Deletes what its owners left", { kind: node.kind.kind, namespace: node.namespace, name: node.name });
  try {
    await deps.client.delete(node.kind, node, query, signal);
  } catch (error) {
    const code = codeOf(error);
    if (code === 404) deps.graph.forget(node.uid);
    // Changed since: its owners may have, too.
    else if (code === 409) deps.look(node.uid);
    else throw error;
  }
}

async function disown(
  deps: CollectorDeps,
  node: Known,
  owners: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  await changeMetadata(deps, node, signal, ({ ownerReferences = [] }) => {
    const others = ownerReferences.filter(({ uid }) => !owners.has(uid));
    return others.length === ownerReferences.length ? undefined : { ownerReferences: others };
  });
}

async function unblockOwners(deps: CollectorDeps, node: Known, signal: AbortSignal): Promise<void> {
  await changeMetadata(deps, node, signal, ({ ownerReferences = [] }) => ({
    ownerReferences: ownerReferences.map((reference) => ({ ...reference, blockOwnerDeletion: false })),
  }));
}

async function removeFinalizer(
  deps: CollectorDeps,
  node: Known,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  await changeMetadata(deps, node, signal, ({ finalizers = [] }) =>
    finalizers.includes(finalizer) ? { finalizers: finalizers.filter((other) => other !== finalizer) } : undefined,
  );
}

/** Throws when others change the object each time that it is about to be written; nothing is done when it is gone. */
async function changeMetadata(
  { client, owners }: CollectorDeps,
  node: Known,
  signal: AbortSignal,
  change: (live: ObjectMeta) => Partial<ObjectMeta> | undefined,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const live = await owners.live(node.kind, node, signal);
    const changed = live?.uid === node.uid ? change(live) : undefined;
    if (live === undefined || changed === undefined) return;
    const metadata = { resourceVersion: live.resourceVersion, ...changed };
    try {
      await client.patch(metadataOnly(node.kind), node, "merge", { metadata }, { signal });
      return;
    } catch (error) {
      const code = codeOf(error);
      if (code === 404) return;
      if (code !== 409 || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

function codeOf(error: unknown): number | undefined {
  return error instanceof StatusError ? error.status.code : undefined;
}
