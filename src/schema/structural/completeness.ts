/** What the junctions at the root of a schema speak of must be described outside of them. */
import { type FieldError, requiredField } from "../validation/field-error.ts";
import { child, index, key } from "../value/field-path.ts";
import { itemsOf, type JsonSchemaProps, propertiesOf, propertyOf } from "./json-schema-props.ts";

/** Kubernetes looks at the root only: junctions further inside may name members that nothing describes. */
export function findIncomplete(root: JsonSchemaProps, path: string): readonly FieldError[] {
  return inJunctions(root, root, path, path);
}

/** `said` stands at `from`, inside a junction or around one; `described` at `path`. */
function inJunctions(said: JsonSchemaProps, described: JsonSchemaProps, path: string, from: string): FieldError[] {
  const all = (["allOf", "anyOf", "oneOf"] as const).flatMap((name) =>
    (said[name] ?? []).flatMap((nested, place) => inNested(nested, described, path, index(child(from, name), place))),
  );
  return said.not === undefined ? all : [...inNested(said.not, described, path, child(from, "not")), ...all];
}

function inNested(
  said: JsonSchemaProps,
  described: JsonSchemaProps | undefined,
  path: string,
  from: string,
): FieldError[] {
  if (described === undefined) return [requiredField(path, `because it is defined in ${from}`)];
  const items = itemsOf(said);
  return [
    ...inJunctions(said, described, path, from),
    ...(items === undefined ? [] : inNested(items, itemsOf(described), child(path, "items"), child(from, "items"))),
    ...propertiesOf(said).flatMap(([name, property]) => {
      const member = key("properties", name);
      return inNested(property, propertyOf(described, name), child(path, member), child(from, member));
    }),
  ];
}
