import { type FieldSet, isEmptySet, isMember, LEAF, type MutableFieldSet, SELF } from "./field-set.ts";
import { shapeBelow as belowShape, type Shape } from "./shape.ts";

/**
 * The set with the members that the schema names and that lead to others of the set: one that has `a.b.c` gets `a` when
 * `a` is a member of an object, and not `a.b` when `a` is a map.
 */
export function ensureNamedFieldsAreMembers(shape: Shape | undefined, set: FieldSet): FieldSet {
  const result: MutableFieldSet = {};
  for (const element in set) {
    const below = set[element]!;
    if (element === SELF || isEmptySet(below)) {
      result[element] = below;
      continue;
    }
    const inner = ensureNamedFieldsAreMembers(belowShape(shape, element), below);
    const named = !isMember(below) && isNamed(shape, element);
    result[element] = named ? { [SELF]: LEAF, ...inner } : inner;
  }
  return result;
}

function isNamed(shape: Shape | undefined, element: string): boolean {
  const inner = shape?.form === "atomic" ? shape.content : shape;
  return inner?.form === "members" && element.startsWith("f:") && inner.declared.has(element.slice(2));
}
