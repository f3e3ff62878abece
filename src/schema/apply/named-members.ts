import { type FieldSet, isEmptySet, isMember, LEAF, type MutableFieldSet, SELF } from "./fieldpath/field-set.ts";
import { shapeBelow as belowShape, type Shape } from "./shape.ts";

/**
 * Adds the struct fields on the path to other members of the set: a set with `a.b.c` gets `a` when `a` is a field that
 * the schema declares, but not `a.b` when `a` is a map.
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
  const inner = shape?.kind === "atomic" ? shape.content : shape;
  return inner?.kind === "members" && element.startsWith("f:") && inner.declared.has(element.slice(2));
}
