/** Label and field selectors of a list or watch. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import {
  type FieldTerm,
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
} from "../../api/meta/selectors/selector.ts";
import type { Matches, Selectable } from "../../storage/watch/watch-event.ts";
import type { IndexValue } from "../../storage/watch/watcher.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";

export interface Selectors {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface Selection<T> {
  /** Undefined when all objects match. */
  readonly matches: Matches<T> | undefined;
  /** The part of the field selector that an index serves. */
  readonly index: IndexValue | undefined;
  /** The name of the only object that can match, if the field selector has `metadata.name`. */
  readonly name: string | undefined;
  /** Key prefix of the objects. */
  readonly prefix: string;
}

/** Throws a 400 for an invalid selector. */
export function select<T extends ApiObject>(registry: Registry<T>, scope: Scope, selectors: Selectors): Selection<T> {
  const labels = parseLabelSelector(selectors.labelSelector ?? "");
  const fields = parseFieldSelector(selectors.fieldSelector ?? "", registry.kind);
  const name = exactValue(fields, "metadata.name");
  const prefix = registry.prefix(scope);
  const matches =
    labels.length === 0 && fields.length === 0
      ? undefined
      : (item: Selectable<T>) =>
          matchesLabels(labels, item.labels) &&
          (fields.length === 0 || matchesFields(fields, item.object, registry.kind));
  return { matches, index: indexFor(registry.kind, fields), name, prefix };
}

/** Undefined when no index serves the selector. */
function indexFor<T extends ApiObject>(
  { indexedFields = [] }: Kind<T>,
  fields: readonly FieldTerm[],
): IndexValue | undefined {
  for (const name of indexedFields) {
    const value = exactValue(fields, name);
    if (value) return { name, value };
  }
  return undefined;
}
function exactValue(fields: readonly FieldTerm[], field: string): string | undefined {
  return fields.find((term) => term.field === field && term.equal)?.value;
}
