/** What most strategies have in common: spec and status are written apart. */
import type { ApiObject, Subresource, SubresourceStrategy } from "./kind.ts";

interface WithStatus extends ApiObject {
  readonly status?: unknown;
}

/** An ordinary write cannot touch the status: it stays what it was. */
export function keepStatus<T extends WithStatus>(next: T, previous: T): T {
  const { status: _, ...rest } = next;
  return (previous.status === undefined ? rest : { ...rest, status: previous.status }) as T;
}

/** New objects have no status yet, whatever the client sent. */
export function dropStatus<T extends WithStatus>(object: T): T {
  const { status: _, ...rest } = object;
  return rest as T;
}

/** A new object is the first generation of what is wanted. */
export function setFirstGeneration<T extends ApiObject>(object: T): T {
  return { ...object, metadata: { ...object.metadata, generation: 1 } };
}

/** The generation counts the changes of what is wanted. */
export function updateGeneration<T extends ApiObject>(next: T, previous: T, changed: boolean): T {
  const generation = (previous.metadata?.generation ?? 0) + (changed ? 1 : 0);
  return generation === 0 ? next : { ...next, metadata: { ...next.metadata, generation } };
}

/** A write to the status changes nothing else but what stands in `metadata` of the update. */
export function replaceStatus<T extends WithStatus>(next: T, previous: T): T {
  const { status: _, ...rest } = previous;
  const merged = { ...rest, metadata: next.metadata };
  return (next.status === undefined ? merged : { ...merged, status: next.status }) as T;
}

/** As `onlyStatus`, and of `metadata` nothing changes either. */
export function replaceStatusOnly<T extends WithStatus>(next: T, previous: T): T {
  const { labels: _, annotations: __, finalizers: ___, ownerReferences: ____, ...rest } = next.metadata ?? {};
  const { labels, annotations, finalizers, ownerReferences } = previous.metadata ?? {};
  const kept = Object.entries({ labels, annotations, finalizers, ownerReferences }).filter(([, value]) => value);
  return replaceStatus({ ...next, metadata: { ...rest, ...Object.fromEntries(kept) } }, previous);
}

/** The `status` subresource; `part` says more than that nothing else changes. */
export function statusSubresource<T extends WithStatus>(
  kind: string,
  part?: Partial<SubresourceStrategy<T>>,
): Subresource<T> {
  const verbs = ["get", "patch", "update"] as const;
  return {
    name: "status",
    kind,
    verbs,
    strategy: { prepareForUpdate: replaceStatus, resetFields: [["spec"]], ...part },
  };
}
