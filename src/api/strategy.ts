/** What most strategies have in common: spec and status are written apart. */
import type { ApiObject, Part, Subresource } from "./kind.ts";

interface WithStatus extends ApiObject {
  readonly status?: unknown;
}

/** An ordinary write cannot touch the status: it stays what it was. */
export function keepStatus<T extends WithStatus>(next: T, previous: T): T {
  const { status: _, ...rest } = next;
  return (previous.status === undefined ? rest : { ...rest, status: previous.status }) as T;
}

/** A write to the status changes nothing else but what stands in `metadata` of the update. */
export function onlyStatus<T extends WithStatus>(next: T, previous: T): T {
  const { status: _, ...rest } = previous;
  const merged = { ...rest, metadata: next.metadata };
  return (next.status === undefined ? merged : { ...merged, status: next.status }) as T;
}

/** The `status` subresource; `part` says more than that nothing else changes. */
export function statusSubresource<T extends WithStatus>(kind: string, part?: Partial<Part<T>>): Subresource<T> {
  const verbs = ["get", "patch", "update"] as const;
  return { name: "status", kind, verbs, part: { prepareForUpdate: onlyStatus, ...part } };
}
