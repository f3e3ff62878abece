/**
 * Who owns whom, by uid, of all objects that have owners or are one. Told of every object by watches, it says which of
 * them somebody has to look at again.
 */
import type { Kind } from "../../api/kind.ts";
import type { ObjectMeta, OwnerReference } from "../../api/meta/object-meta.ts";
import { parseApiVersion, svcGroup } from "../../api/scheme.ts";
import { deepEqual } from "../../schema/value/equal.ts";

export const ORPHAN = "orphan";
export const FOREGROUND = "foregroundDeletion";

/**
 *     living ──► leaving             deleted; others than the collector hold it
 *        ├─────► orphaning           deleted; what it owns is to be let go first
 *        └─────► foreground          deleted; what it owns is to be deleted first
 */
export type Phase = "living" | "leaving" | "orphaning" | "foreground";

export interface OwnershipNode {
  readonly uid: string;
  /** Undefined while only the references of others tell of the object. */
  readonly kind: Kind | undefined;
  readonly namespace: string;
  readonly name: string;
  readonly phase: Phase;
  readonly owners: readonly OwnerReference[];
  /** Undefined when it never had any, which is true of most. */
  readonly dependents: ReadonlySet<OwnershipNode> | undefined;
}

interface Node extends OwnershipNode {
  kind: Kind | undefined;
  namespace: string;
  name: string;
  phase: Phase;
  owners: readonly OwnerReference[];
  dependents: Set<Node> | undefined;
  /** What the last dependent had as its owners: a thousand pods of one owner share one list. */
  shared: readonly OwnerReference[] | undefined;
}

export interface GraphHandlers {
  /** The object may have to be deleted, let go of or verified. Called synchronously, often for the same object. */
  look(uid: string): void;
  /** The dependent names an owner that lives in another namespace. */
  misplaced(dependent: OwnershipNode, owner: OwnerReference): void;
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

  /** The object is there, and this is its metadata. */
  observe(kind: Kind, metadata: ObjectMeta): void {
    const { uid, name = "", namespace = "", ownerReferences: owners = NONE } = metadata;
    if (uid === undefined) return;
    const phase = phaseOf(metadata);
    const known = this.#nodes.get(uid);
    if (known === undefined && owners.length === 0 && !asksCollector(phase)) return;
    const node = known ?? this.#add(uid);
    const isNew = node.kind === undefined;
    const before = node.phase;
    node.phase = phase;
    if (isNew) {
      node.kind = kind;
      node.namespace = namespace;
      node.name = name;
      for (const dependent of node.dependents ?? []) this.#checkPlace(dependent, node);
    }
    this.#link(node, owners);
    if (phase !== before && asksCollector(phase)) {
      this.#handlers.look(uid);
      if (phase === "foreground") for (const dependent of node.dependents ?? []) this.#handlers.look(dependent.uid);
    }
    this.#prune(node);
  }

  /** The object is not there, or no longer: what names it as its owner is to be looked at. */
  forget(uid: string): void {
    const node = this.#nodes.get(uid);
    if (node === undefined) return;
    for (const reference of node.owners) this.#unlink(node, reference);
    node.owners = NONE;
    node.kind = undefined;
    node.phase = "living";
    for (const dependent of node.dependents ?? []) this.#handlers.look(dependent.uid);
    // An owner is remembered as long as somebody names it.
    this.#prune(node);
  }

  /** All objects of the kind that are there. */
  retain(kind: Kind, uids: ReadonlySet<string>): void {
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
    for (const reference of before) {
      const now = owners.find(({ uid }) => uid === reference.uid);
      if (now === undefined) this.#unlink(node, reference);
      // What the owner waited for it need not wait for any more.
      else if (reference.blockOwnerDeletion === true && now.blockOwnerDeletion !== true) this.#wakeWaiting(now.uid);
    }
    node.owners = owners;
    for (const reference of owners) {
      if (before.some(({ uid }) => uid === reference.uid)) continue;
      const owner = this.#nodes.get(reference.uid) ?? this.#add(reference.uid);
      owner.dependents ??= new Set();
      owner.dependents.add(node);
      if (owner.shared !== undefined && deepEqual(owner.shared, owners)) node.owners = owner.shared;
      else owner.shared = owners;
      if (owner.kind === undefined) this.#handlers.look(owner.uid);
      else this.#checkPlace(node, owner);
      if (owner.phase === "foreground") this.#handlers.look(node.uid);
    }
  }

  #unlink(node: Node, { uid }: OwnerReference): void {
    const owner = this.#nodes.get(uid);
    if (owner === undefined) return;
    owner.dependents?.delete(node);
    this.#wakeWaiting(uid);
    this.#prune(owner);
  }

  #wakeWaiting(uid: string): void {
    if (this.#nodes.get(uid)?.phase === "foreground") this.#handlers.look(uid);
  }

  /** A reference that names its owner by the wrong kind, name or namespace is one to nobody. */
  #checkPlace(dependent: Node, owner: Node): void {
    const reference = dependent.owners.find(({ uid }) => uid === owner.uid);
    if (reference === undefined || owner.kind === undefined) return;
    const isElsewhere = owner.namespace !== "" && owner.namespace !== dependent.namespace;
    if (!isElsewhere && reference.name === owner.name && names(reference, owner.kind)) return;
    if (isElsewhere) this.#handlers.misplaced(dependent, reference);
    this.#handlers.look(dependent.uid);
  }

  #prune(node: Node): void {
    if (node.owners.length > 0 || (node.dependents?.size ?? 0) > 0 || asksCollector(node.phase)) return;
    this.#nodes.delete(node.uid);
  }
}

function phaseOf({ deletionTimestamp, finalizers = [] }: ObjectMeta): Phase {
  if (deletionTimestamp === undefined) return "living";
  if (finalizers.includes(ORPHAN)) return "orphaning";
  return finalizers.includes(FOREGROUND) ? "foreground" : "leaving";
}

function asksCollector(phase: Phase): boolean {
  return phase === "orphaning" || phase === "foreground";
}

/** In whatever version. */
function names(reference: OwnerReference, kind: Kind): boolean {
  const { group = "" } = parseApiVersion(reference.apiVersion) ?? {};
  return reference.kind === kind.kind && svcGroup(group) === kind.group;
}

function isSameKind(a: Kind, b: Kind): boolean {
  return a.kind === b.kind && a.group === b.group;
}
