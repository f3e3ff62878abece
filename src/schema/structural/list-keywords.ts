/** Validates the keywords of set and map lists. */
import {
  errorsMax,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  unstructured,
} from "../validation/field-error.ts";
import { child, key } from "../value/field-path.ts";
import { itemsOf, type JsonSchemaProps, propertyOf } from "./json-schema-props.ts";

const LIST_TYPE = "x-kubernetes-list-type";
const MAP_KEYS = "x-kubernetes-list-map-keys";

/** Items of a set must be atomic, since they are compared as a whole. */
export function validateSetItems(props: JsonSchemaProps, path: string): readonly FieldError[] {
  const items = itemsOf(props);
  if (props[LIST_TYPE] !== "set" || items === undefined) return [];
  const why = "must be atomic as item of a list with x-kubernetes-list-type=set";
  const listType = items[LIST_TYPE];
  if (items.type === "array" && listType !== undefined && listType !== "atomic") {
    return [invalidField(child(child(path, "items"), LIST_TYPE), listType, why)];
  }
  if (items.type === "object" && items["x-kubernetes-map-type"] !== "atomic") {
    return [invalidField(child(child(path, "items"), "x-kubernetes-map-type"), listType, why)];
  }
  return [];
}

export function checkListType(props: JsonSchemaProps, path: string): readonly FieldError[] {
  const listType = props[LIST_TYPE];
  const errors: FieldError[] = [];
  if (listType !== undefined && listType !== "atomic" && listType !== "set" && listType !== "map") {
    errors.push(notSupported(child(path, LIST_TYPE), listType, ["atomic", "set", "map"]));
  }
  if ((props[MAP_KEYS] ?? []).length > 0 && listType !== "map") {
    const why = "must be map if x-kubernetes-list-map-keys is non-empty";
    const field = child(path, LIST_TYPE);
    errors.push(listType === undefined ? requiredField(field, why) : invalidField(field, listType, why));
  }
  return listType === "map" ? [...errors, ...checkKeyedList(props, path)] : errors;
}

function checkKeyedList(props: JsonSchemaProps, path: string): readonly FieldError[] {
  const keys = props[MAP_KEYS] ?? [];
  const items = itemsOf(props);
  const field = child(path, "items");
  const errors: FieldError[] = [];
  if (keys.length === 0) {
    errors.push(requiredField(child(path, MAP_KEYS), "must not be empty if x-kubernetes-list-type is map"));
  }
  if (props.items === undefined) {
    errors.push(requiredField(field, "must have a schema if x-kubernetes-list-type is map"));
  } else if (items === undefined) {
    const why = "must only have a single schema if x-kubernetes-list-type is map";
    errors.push(invalidField(field, unstructured(props.items), why));
  } else if (items.type !== "object") {
    const why = "must be object if parent array's x-kubernetes-list-type is map";
    errors.push(invalidField(child(field, "type"), items.type ?? "", why));
  } else errors.push(...checkKeys(keys, items, path));
  return errors;
}

function checkKeys(keys: readonly string[], items: JsonSchemaProps, path: string): readonly FieldError[] {
  const seen = new Set<string>();
  const errors: FieldError[] = [];
  for (const name of keys) {
    if (errors.length >= errorsMax) break;
    const type = propertyOf(items, name)?.type;
    if (propertyOf(items, name) === undefined) {
      errors.push(invalidField(child(path, MAP_KEYS), keys, "entries must all be names of item properties"));
    } else if (type === "array" || type === "object") {
      const field = child(key(child(child(path, "items"), "properties"), name), "type");
      const why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
      errors.push(invalidField(field, items.type, why));
    }
    if (seen.has(name)) errors.push(invalidField(child(path, MAP_KEYS), keys, "must not contain duplicate entries"));
    seen.add(name);
  }
  return errors;
}

/** The keys of a map list must be required or have a default, and items and keys must not be nullable. */
export function validateListMapKeys(props: JsonSchemaProps, path: string): readonly FieldError[] {
  const listType = props[LIST_TYPE];
  const items = itemsOf(props);
  if (items === undefined || (listType !== "set" && listType !== "map")) return [];
  const errors: FieldError[] = [];
  if (items.nullable === true) {
    const why = `cannot be nullable when x-kubernetes-list-type is ${listType}`;
    errors.push(forbiddenField(child(child(path, "items"), "nullable"), why));
  }
  if (listType === "set") return errors;
  for (const name of props[MAP_KEYS] ?? []) {
    if (errors.length >= errorsMax) break;
    const property = propertyOf(items, name);
    if (property === undefined) continue;
    const field = key(child(child(path, "items"), "properties"), name);
    const listed = "this property is in x-kubernetes-list-map-keys, so it";
    if (property.default === undefined && !(items.required ?? []).includes(name)) {
      errors.push(requiredField(child(field, "default"), `${listed} must have a default or be a required property`));
    }
    if (property.nullable === true) {
      errors.push(forbiddenField(child(field, "nullable"), `${listed} cannot be nullable`));
    }
  }
  return errors;
}
