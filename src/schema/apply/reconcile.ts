import { type FieldSet, isEmptySet, LEAF, type MutableFieldSet, SELF } from "./fieldpath/field-set.ts";
import { shapeBelow as belowShape, type Shape } from "./shape.ts";

/**
 * Adapts a stored set to the current schema: fields below a member that was granular and is now atomic become the
 * member. Returns the set itself when nothing changes.
 */
export function reconcileFieldSet(shape: Shape, set: FieldSet): FieldSet {
  let result: MutableFieldSet | undefined;
  for (const element in set) {
    if (element === SELF) continue;
    const below = set[element]!;
    if (isEmptySet(below)) continue;
    const inner = belowShape(shape, element);
    // Undeclared and schemaless members stay as they are.
    if (inner === undefined || inner.kind === "deduced" || inner.kind === "scalar") continue;
    const next = inner.kind === "atomic" ? LEAF : reconcileFieldSet(inner, below);
    if (next === below) continue;
    result ??= { ...set };
    result[element] = next;
  }
  return result ?? set;
}
