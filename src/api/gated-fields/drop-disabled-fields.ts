/** Drops the fields of features that are off from the object of a write. */
import type { FeatureLookup } from "../../flags/gates.ts";
import { type ApiObject, type Kind, storageKindOf } from "../kind.ts";
import type { GatedFields } from "./gated-fields.ts";
import { type FieldPath, hasField, parseFieldPath, replaceField } from "./paths.ts";
import { disabledRules, type ScopedRule } from "./rules.ts";

/** Returns `next` itself when it has no such field. `previous` is undefined for a new object. */
export type DropDisabledFields<T> = (next: T, previous: T | undefined) => T;

/** Undefined when the kind has no gated fields, or all of their gates are on. */
export function createDropDisabledFields<T extends ApiObject>(
  kind: Kind<T>,
  features: FeatureLookup,
): DropDisabledFields<T> | undefined {
  if (kind.custom) return undefined;
  const stored = storageKindOf(kind);
  const steps = disabledRules(stored.group, stored.plural, features).map(compileRule);
  if (steps.length === 0) return undefined;
  const drop = (next: unknown, previous: unknown): unknown =>
    steps.reduce((object, step) => step(object, previous), next);
  const { conversion } = kind;
  if (conversion === undefined) return (next, previous) => drop(next, previous) as T;
  return (next, previous) => {
    const object = conversion.toStorage(next);
    const changed = drop(object, previous === undefined ? undefined : conversion.toStorage(previous));
    return changed === object ? next : conversion.fromStorage(changed as ApiObject);
  };
}

type Step = (next: unknown, previous: unknown) => unknown;

function compileRule({ rule, scope }: ScopedRule): Step {
  const within = scope === "" ? [] : parseFieldPath(scope);
  const paths = rule.paths.map((path) => [...within, ...parseFieldPath(path)]);
  const isUsed = usage(rule, within, paths);
  if (rule.drop !== undefined) {
    const { drop } = rule;
    return (next, previous) => (isUsed(previous) ? next : replaceField(next, within, drop, false));
  }
  const { replacement, prunes = false } = rule;
  return (next, previous) => {
    // An empty text is a value of a pointer field.
    const found = paths.filter((path) => hasField(next, path, true));
    if (found.length === 0 || isUsed(previous)) return next;
    return found.reduce((object, path) => replaceField(object, path, () => replacement, prunes), next);
  };
}

function usage(rule: GatedFields, within: FieldPath, paths: readonly FieldPath[]): (previous: unknown) => boolean {
  const { isUsed, usedAt } = rule;
  if (isUsed !== undefined) return (previous) => previous !== undefined && isUsed(valueAt(previous, within));
  const used = usedAt?.map((path) => [...within, ...parseFieldPath(path)]) ?? paths;
  return (previous) => previous !== undefined && used.some((path) => hasField(previous, path));
}

function valueAt(value: unknown, path: FieldPath): unknown {
  return path.reduce<unknown>(
    (object, { name }) => (object as Readonly<Record<string, unknown>> | undefined)?.[name],
    value,
  );
}
