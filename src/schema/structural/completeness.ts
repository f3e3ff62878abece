/** What the junctions at the root of a schema speak of must be described outside of them. */
import { type FieldError, requiredField } from "../validation/field-error.ts";
import { child, index, key } from "../value/field-path.ts";
import { itemsOf, type JsonSchemaProps, propertiesOf, propertyOf } from "./json-schema-props.ts";

/** Kubernetes looks at the root only: junctions further inside may name members that nothing describes. */
export function validateCompleteness(root: JsonSchemaProps, path: string): readonly FieldError[] {
  return checkJunctors(root, root, path, path);
}

/** `said` stands at `from`, inside a junction or around one; `described` at `path`. */
function checkJunctors(junctor: JsonSchemaProps, described: JsonSchemaProps, path: string, from: string): FieldError[] {
  const all = (["allOf", "anyOf", "oneOf"] as const).flatMap((name) =>
    (junctor[name] ?? []).flatMap((nested, position) =>
      checkNested(nested, described, path, index(child(from, name), position)),
    ),
  );
  return junctor.not === undefined ? all : [...checkNested(junctor.not, described, path, child(from, "not")), ...all];
}

function checkNested(
  nested: JsonSchemaProps,
  described: JsonSchemaProps | undefined,
  path: string,
  from: string,
): FieldError[] {
  if (described === undefined) return [requiredField(path, `because it is defined in ${from}`)];
  const items = itemsOf(nested);
  return [
    ...checkJunctors(nested, described, path, from),
    ...(items === undefined ? [] : checkNested(items, itemsOf(described), child(path, "items"), child(from, "items"))),
    ...propertiesOf(nested).flatMap(([name, property]) => {
      const member = key("properties", name);
      return checkNested(property, propertyOf(described, name), child(path, member), child(from, member));
    }),
  ];
}
