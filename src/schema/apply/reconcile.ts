import { type FieldSet, isEmptySet, LEAF, type MutableFieldSet, SELF } from "./field-set.ts";
import { shapeBelow as belowShape, type Shape } from "./shape.ts";

/**
 * The set as it reads today: what was written when a member was granular, and is atomic now, is the member itself. The
 * set itself when nothing of the kind is in it.
 */
export function reconcileFieldSet(shape: Shape, set: FieldSet): FieldSet {
  let result: MutableFieldSet | undefined;
  for (const element in set) {
    if (element === SELF) continue;
    const below = set[element]!;
    if (isEmptySet(below)) continue;
    const inner = belowShape(shape, element);
    // Members that the schema does not know, and what no schema tells of, stay as they are.
    if (inner === undefined || inner.form === "deduced" || inner.form === "scalar") continue;
    const next = inner.form === "atomic" ? LEAF : reconcileFieldSet(inner, below);
    if (next === below) continue;
    result ??= { ...set };
    result[element] = next;
  }
  return result ?? set;
}
