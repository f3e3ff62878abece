/** Properties and items inside logical junctors must also be specified outside of them, so that they have a type. */
import { type FieldError, requiredField, validateEach } from "../validation/field-error.ts";
import { child, index, key } from "../value/field-path.ts";
import { itemsOf, type JsonSchemaProps, propertiesOf, propertyOf } from "./json-schema-props.ts";

/** Checks only the junctors at the root, as Kubernetes does. */
export function validateCompleteness(root: JsonSchemaProps, path: string): readonly FieldError[] {
  return checkJunctors(root, root, path, path);
}

/** `junctor` is the schema at `from`, whose junctors are checked; `described` is the schema at `path`. */
function checkJunctors(junctor: JsonSchemaProps, described: JsonSchemaProps, path: string, from: string): FieldError[] {
  const all = (["allOf", "anyOf", "oneOf"] as const).flatMap((name) =>
    validateEach(junctor[name] ?? [], (nested, position) =>
      checkNestedSchema(nested, described, path, index(child(from, name), position)),
    ),
  );
  return junctor.not === undefined
    ? all
    : [...checkNestedSchema(junctor.not, described, path, child(from, "not")), ...all];
}

function checkNestedSchema(
  nested: JsonSchemaProps,
  described: JsonSchemaProps | undefined,
  path: string,
  from: string,
): FieldError[] {
  if (described === undefined) return [requiredField(path, `because it is defined in ${from}`)];
  const items = itemsOf(nested);
  return [
    ...checkJunctors(nested, described, path, from),
    ...(items === undefined
      ? []
      : checkNestedSchema(items, itemsOf(described), child(path, "items"), child(from, "items"))),
    ...validateEach(propertiesOf(nested), ([name, property]) => {
      const member = key("properties", name);
      return checkNestedSchema(property, propertyOf(described, name), child(path, member), child(from, member));
    }),
  ];
}
