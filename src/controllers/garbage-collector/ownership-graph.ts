/** The graph of owners and dependents, by uid. Watches update it; it reports the objects that must be processed. */
import type { Kind } from "../../api/kind.ts";
import type { ObjectMeta, OwnerReference } from "../../api/meta/object-meta.ts";
import { parseApiVersion, svcGroup } from "../../api/scheme.ts";
import { deepEqual } from "../../schema/value/equal.ts";

export const ORPHAN = "orphan";
export const FOREGROUND = "foregroundDeletion";

/**
 *     living ──► terminating         deleted; other finalizers remain
 *        ├─────► orphaning           deleted; dependents must be orphaned first
 *        └─────► foreground          deleted; dependents must be deleted first
 */
export type Phase = "living" | "terminating" | "orphaning" | "foreground";

export interface OwnershipNode {
  readonly uid: string;
  /** Undefined if the object is only known from references. */
  readonly kind: Kind | undefined;
  readonly namespace: string;
  readonly name: string;
  readonly phase: Phase;
  readonly owners: readonly OwnerReference[];
  /** Undefined if it never had dependents, as most objects. */
  readonly dependents: ReadonlySet<OwnershipNode> | undefined;
}

interface Node extends OwnershipNode {
  kind: Kind | undefined;
  namespace: string;
  name: string;
  phase: Phase;
  owners: readonly OwnerReference[];
  dependents: Set<Node> | undefined;
  /** The owners of the last dependent: a thousand pods of one owner share one list. */
  shared: readonly OwnerReference[] | undefined;
}

export interface GraphHandlers {
  /** The object may have to be deleted, orphaned or verified. Called synchronously, often for the same object. */
  enqueue(uid: string): void;
  /** The dependent references an owner in another namespace. */
  invalidNamespace(dependent: OwnershipNode, owner: OwnerReference): void;
}

const NONE: readonly OwnerReference[] = [];

export class OwnershipGraph {
  readonly #nodes = new Map<string, Node>();
  readonly #handlers: GraphHandlers;

  constructor(handlers: GraphHandlers) {
    this.#handlers = handlers;
  }

  get size(): number {
    return this.#nodes.size;
  }

  get(uid: string): OwnershipNode | undefined {
    return this.#nodes.get(uid);
  }

  /** The object exists and has this metadata. */
  observe(kind: Kind, metadata: ObjectMeta): void {
    const { uid, name = "", namespace = "", ownerReferences: owners = NONE } = metadata;
    if (uid === undefined) return;
    const phase = phaseOf(metadata);
    const existing = this.#nodes.get(uid);
    if (existing === undefined && owners.length === 0 && !needsCollector(phase)) return;
    const node = existing ?? this.#add(uid);
    const isNew = node.kind === undefined;
    const before = node.phase;
    node.phase = phase;
    if (isNew) {
      node.kind = kind;
      node.namespace = namespace;
      node.name = name;
      for (const dependent of node.dependents ?? []) this.#checkReference(dependent, node);
    }
    this.#link(node, owners);
    if (phase !== before && needsCollector(phase)) {
      this.#handlers.enqueue(uid);
      if (phase === "foreground") for (const dependent of node.dependents ?? []) this.#handlers.enqueue(dependent.uid);
    }
    this.#prune(node);
  }

  /** The object does not exist: its dependents must be processed. */
  forget(uid: string): void {
    const node = this.#nodes.get(uid);
    if (node === undefined) return;
    for (const reference of node.owners) this.#unlink(node, reference);
    node.owners = NONE;
    node.kind = undefined;
    node.phase = "living";
    for (const dependent of node.dependents ?? []) this.#handlers.enqueue(dependent.uid);
    // An owner stays in the graph while dependents reference it.
    this.#prune(node);
  }

  /** The complete list of existing objects of the kind. */
  replaceAll(kind: Kind, uids: ReadonlySet<string>): void {
    for (const uid of this.uidsOf(kind)) if (!uids.has(uid)) this.forget(uid);
  }

  uidsOf(kind: Kind): readonly string[] {
    const found: string[] = [];
    for (const node of this.#nodes.values()) {
      if (node.kind !== undefined && isSameKind(node.kind, kind)) found.push(node.uid);
    }
    return found;
  }

  #add(uid: string): Node {
    const node: Node = {
      uid,
      kind: undefined,
      namespace: "",
      name: "",
      phase: "living",
      owners: NONE,
      dependents: undefined,
      shared: undefined,
    };
    this.#nodes.set(uid, node);
    return node;
  }

  #link(node: Node, owners: readonly OwnerReference[]): void {
    const before = node.owners;
    if (before === owners || deepEqual(before, owners)) return;
    // An object may have thousands of owners.
    const [beforeByUid, nowByUid] = [firstByUid(before), firstByUid(owners)];
    for (const reference of before) {
      const now = nowByUid.get(reference.uid);
      if (now === undefined) this.#unlink(node, reference);
      // The owner no longer waits for this dependent.
      else if (reference.blockOwnerDeletion === true && now.blockOwnerDeletion !== true)
        this.#enqueueForeground(now.uid);
    }
    node.owners = owners;
    for (const reference of owners) {
      if (beforeByUid.has(reference.uid)) continue;
      const owner = this.#nodes.get(reference.uid) ?? this.#add(reference.uid);
      owner.dependents ??= new Set();
      owner.dependents.add(node);
      if (owner.shared !== undefined && deepEqual(owner.shared, owners)) node.owners = owner.shared;
      else owner.shared = owners;
      if (owner.kind === undefined) this.#handlers.enqueue(owner.uid);
      else this.#checkReference(node, owner);
    }
  }

  #unlink(node: Node, { uid }: OwnerReference): void {
    const owner = this.#nodes.get(uid);
    if (owner === undefined) return;
    owner.dependents?.delete(node);
    this.#enqueueForeground(uid);
    this.#prune(owner);
  }

  #enqueueForeground(uid: string): void {
    if (this.#nodes.get(uid)?.phase === "foreground") this.#handlers.enqueue(uid);
  }

  /** A reference with the wrong kind, name or namespace does not match the owner. */
  #checkReference(dependent: Node, owner: Node): void {
    const reference = dependent.owners.find(({ uid }) => uid === owner.uid);
    if (reference === undefined || owner.kind === undefined) return;
    const isElsewhere = owner.namespace !== "" && owner.namespace !== dependent.namespace;
    if (!isElsewhere && reference.name === owner.name && matchesKind(reference, owner.kind)) return;
    if (isElsewhere) this.#handlers.invalidNamespace(dependent, reference);
    this.#handlers.enqueue(dependent.uid);
  }

  #prune(node: Node): void {
    if (node.owners.length > 0 || (node.dependents?.size ?? 0) > 0 || needsCollector(node.phase)) return;
    this.#nodes.delete(node.uid);
  }
}

function firstByUid(owners: readonly OwnerReference[]): ReadonlyMap<string, OwnerReference> {
  return new Map(owners.toReversed().map((reference) => [reference.uid, reference]));
}

function phaseOf({ deletionTimestamp, finalizers = [] }: ObjectMeta): Phase {
  if (deletionTimestamp === undefined) return "living";
  if (finalizers.includes(ORPHAN)) return "orphaning";
  return finalizers.includes(FOREGROUND) ? "foreground" : "terminating";
}

function needsCollector(phase: Phase): boolean {
  return phase === "orphaning" || phase === "foreground";
}

/** In any version. */
function matchesKind(reference: OwnerReference, kind: Kind): boolean {
  const { group = "" } = parseApiVersion(reference.apiVersion) ?? {};
  return reference.kind === kind.kind && svcGroup(group) === kind.group;
}

function isSameKind(a: Kind, b: Kind): boolean {
  return a.kind === b.kind && a.group === b.group;
}
