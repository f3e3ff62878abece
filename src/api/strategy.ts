/** Steps that most strategies share: separate writes of spec and status, and the generation. */
import type { ApiObject, Subresource, SubresourceStrategy } from "./kind.ts";

interface WithStatus extends ApiObject {
  readonly status?: unknown;
}

/** Keeps the previous status: only the status subresource writes it. */
export function keepStatus<T extends WithStatus>(next: T, previous: T): T {
  const { status: _, ...rest } = next;
  return (previous.status === undefined ? rest : { ...rest, status: previous.status }) as T;
}

/** Drops the status that the client sent for a new object. */
export function dropStatus<T extends WithStatus>(object: T): T {
  const { status: _, ...rest } = object;
  return rest as T;
}

/** Sets `metadata.generation` of a new object to 1. */
export function setFirstGeneration<T extends ApiObject>(object: T): T {
  return { ...object, metadata: { ...object.metadata, generation: 1 } };
}

/** Increments `metadata.generation` when the update changed the desired state. */
export function updateGeneration<T extends ApiObject>(next: T, previous: T, changed: boolean): T {
  const generation = (previous.metadata?.generation ?? 0) + (changed ? 1 : 0);
  return generation === 0 ? next : { ...next, metadata: { ...next.metadata, generation } };
}

/** Returns `previous` with the status and the metadata of `next`. */
export function replaceStatus<T extends WithStatus>(next: T, previous: T): T {
  const { status: _, ...rest } = previous;
  const merged = { ...rest, metadata: next.metadata };
  return (next.status === undefined ? merged : { ...merged, status: next.status }) as T;
}

/** Like `replaceStatus`, but keeps labels, annotations, finalizers and owner references as well. */
export function replaceStatusOnly<T extends WithStatus>(next: T, previous: T): T {
  const { labels: _, annotations: __, finalizers: ___, ownerReferences: ____, ...rest } = next.metadata ?? {};
  const { labels, annotations, finalizers, ownerReferences } = previous.metadata ?? {};
  const kept = Object.entries({ labels, annotations, finalizers, ownerReferences }).filter(([, value]) => value);
  return replaceStatus({ ...next, metadata: { ...rest, ...Object.fromEntries(kept) } }, previous);
}

/** The `status` subresource; `overrides` replaces what most kinds share. */
export function statusSubresource<T extends WithStatus>(
  kind: string,
  overrides?: Partial<SubresourceStrategy<T>>,
): Subresource<T> {
  const verbs = ["get", "patch", "update"] as const;
  return {
    name: "status",
    kind,
    verbs,
    strategy: { prepareForUpdate: replaceStatus, resetFields: [["spec"]], ...overrides },
  };
}
