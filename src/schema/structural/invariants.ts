/**
 * Validates that a schema is structural: every part specifies its type, and logical junctors (`allOf`, `anyOf`,
 * `oneOf`, `not`) specify no types. Only then can a server prune, default and merge without trying alternatives.
 */
import type { Steps } from "../../std/async/steps.ts";
import {
  type FieldError,
  forbiddenField,
  invalidField,
  renderFieldError,
  requiredField,
  validateEach,
} from "../validation/field-error.ts";
import { compilePattern } from "../validation/pattern.ts";
import { child, index, key } from "../value/field-path.ts";
import { validateCompleteness } from "./completeness.ts";
import { itemsOf, type JsonSchemaProps, propertiesOf, propertyOf, valuesOf } from "./json-schema-props.ts";

type Level = "root" | "item" | "field";

/** Returns the errors sorted by their text, as Kubernetes does. Stops at about a hundred. */
export function* validateStructural(root: JsonSchemaProps, path: string): Steps<readonly FieldError[]> {
  const parts = validatePart(root, "root", path);
  yield;
  const errors = [...parts, ...validateCompleteness(root, path)];
  const texts = new Map(errors.map((error) => [error, `${error.field}: ${renderFieldError(error)}`]));
  return errors.sort((a, b) => ((texts.get(a) ?? "") < (texts.get(b) ?? "") ? -1 : 1));
}

function validatePart(props: JsonSchemaProps, level: Level, path: string): readonly FieldError[] {
  const items = itemsOf(props);
  const values = valuesOf(props);
  return [
    ...(props.type === "array" && items === undefined
      ? [requiredField(child(path, "items"), "must be specified")]
      : []),
    ...(items === undefined ? [] : validatePart(items, "item", child(path, "items"))),
    ...validateEach(propertiesOf(props), ([name, property]) =>
      validatePart(property, "field", key(child(path, "properties"), name)),
    ),
    ...(props.additionalProperties !== undefined && level === "root"
      ? [forbiddenField(child(path, "additionalProperties"), "must not be used at the root")]
      : []),
    ...(values === undefined ? [] : validatePart(values, "field", child(path, "additionalProperties"))),
    ...checkExtensions(props, path),
    ...checkJunctors(props, level, path),
    ...checkType(props, level, path),
    ...checkResource(props, level, path),
  ];
}

function checkExtensions(props: JsonSchemaProps, path: string): readonly FieldError[] {
  if (props["x-kubernetes-int-or-string"] !== true) return [];
  const clashing = ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] as const;
  return clashing
    .filter((name) => props[name] === true)
    .map((name) => invalidField(child(path, name), true, "must be false if x-kubernetes-int-or-string is true"));
}

const typeRequiredMessages: Readonly<Record<Level, string>> = {
  root: "must not be empty at the root",
  item: "must not be empty for specified array items",
  field: "must not be empty for specified object fields",
};

function checkType(props: JsonSchemaProps, level: Level, path: string): readonly FieldError[] {
  const field = child(path, "type");
  const type = props.type ?? "";
  const errors: FieldError[] = [];
  if (props["x-kubernetes-embedded-resource"] === true && type !== "object") {
    const why = "must be object if x-kubernetes-embedded-resource is true";
    errors.push(type === "" ? requiredField(field, why) : invalidField(field, type, why));
  } else if (
    type === "" &&
    props["x-kubernetes-int-or-string"] !== true &&
    props["x-kubernetes-preserve-unknown-fields"] !== true
  ) {
    errors.push(requiredField(field, typeRequiredMessages[level]));
  }
  if (level === "root" && type !== "" && type !== "object") {
    errors.push(invalidField(field, type, "must be object at the root"));
  }
  return errors;
}

/** A resource, at the root or embedded, must not change the types of `apiVersion`, `kind` and `metadata`. */
function checkResource(props: JsonSchemaProps, level: Level, path: string): readonly FieldError[] {
  const embedded = props["x-kubernetes-embedded-resource"] === true;
  const resource = level === "root" || embedded;
  const errors: FieldError[] = [];
  if (embedded && props.additionalProperties !== undefined) {
    const why = "must not be used if x-kubernetes-embedded-resource is set";
    errors.push(forbiddenField(child(path, "additionalProperties"), why));
  }
  for (const name of ["kind", "apiVersion"]) {
    const type = propertyOf(props, name)?.type ?? "";
    if (!resource || propertyOf(props, name) === undefined || type === "string") continue;
    errors.push(invalidField(child(key(child(path, "properties"), name), "type"), type, "must be string"));
  }
  const metadata = propertyOf(props, "metadata");
  if (metadata !== undefined && resource) {
    errors.push(...checkMetadata(metadata, level, key(child(path, "properties"), "metadata")));
  }
  const unknown = props["x-kubernetes-preserve-unknown-fields"] === true;
  if (embedded && !unknown && propertiesOf(props).length === 0) {
    const why =
      "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
    errors.push(requiredField(child(path, "properties"), why));
  }
  return errors;
}

const specifiableMetadata = new Set(["name", "generateName"]);

function checkMetadata(metadata: JsonSchemaProps, level: Level, path: string): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (metadata.type !== "object") errors.push(invalidField(child(path, "type"), metadata.type ?? "", "must be object"));
  if (level !== "root") return errors;
  const { type: _, default: __, properties = {}, ...rest } = metadata;
  const more = Object.entries(rest).some(([, value]) => value !== undefined && value !== false && value !== "");
  if (more || Object.keys(properties).some((name) => !specifiableMetadata.has(name))) {
    const why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
    errors.push(forbiddenField(path, why));
  }
  return errors;
}

/** Checks the junctors of a schema for keywords that are allowed only outside of them. */
function checkJunctors(props: JsonSchemaProps, level: Level, path: string): readonly FieldError[] {
  const first = props.allOf?.[0];
  return checkValueRules(props, level, path, {
    anyOf: isIntOrString(props.anyOf),
    firstAllOf: first !== undefined && isIntOrString(first.anyOf),
  });
}

/** `anyOf: [{type: integer}, {type: string}]` is allowed, since client-go's generators write it for int-or-string. */
function isIntOrString(anyOf: readonly JsonSchemaProps[] | undefined): boolean {
  return anyOf?.length === 2 && ["integer", "string"].every((type, position) => isOnlyType(anyOf[position], type));
}

function isOnlyType(props: JsonSchemaProps | undefined, type: string): boolean {
  const specified = Object.entries(props ?? {}).filter(([, value]) => value !== undefined);
  return specified.length === 1 && props?.type === type;
}

interface IntOrStringExceptions {
  readonly anyOf?: boolean;
  /** The `anyOf` of the first item of `allOf`. */
  readonly firstAllOf?: boolean;
}

function checkValueRules(
  props: JsonSchemaProps,
  level: Level,
  path: string,
  { anyOf = false, firstAllOf = false }: IntOrStringExceptions,
): readonly FieldError[] {
  const each = (name: "allOf" | "anyOf" | "oneOf", excepted = false): readonly FieldError[] => {
    const list = props[name];
    if (list === undefined) return none;
    const field = child(path, name);
    return validateEach(list, (nested, position) =>
      checkNested(nested, level, index(field, position), { anyOf: excepted && position === 0 }),
    );
  };
  return [
    ...(anyOf ? none : each("anyOf")),
    ...each("allOf", firstAllOf),
    ...each("oneOf"),
    ...(props.not === undefined ? none : checkNested(props.not, level, child(path, "not"), {})),
    ...checkPattern(props.pattern, child(path, "pattern")),
  ];
}

const none: readonly FieldError[] = [];

function checkPattern(pattern: string | undefined, field: string): readonly FieldError[] {
  if (pattern === undefined || pattern === "") return [];
  try {
    compilePattern(pattern);
    return [];
  } catch (error) {
    const why = `must be a valid regular expression, but isn't: ${(error as Error).message}`;
    return [invalidField(field, pattern, why)];
  }
}

/** Keywords that are forbidden inside a junctor, with Kubernetes' messages. */
const forbiddenInJunctors = {
  type: "must be empty to be structural",
  additionalProperties: "must be undefined to be structural",
  default: "must be undefined to be structural",
  title: "must be empty to be structural",
  description: "must be empty to be structural",
  nullable: "must be false to be structural",
  "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
  "x-kubernetes-embedded-resource": "must be false to be structural",
  "x-kubernetes-int-or-string": "must be false to be structural",
  "x-kubernetes-list-map-keys": "must be empty to be structural",
  "x-kubernetes-list-type": "must be undefined to be structural",
  "x-kubernetes-map-type": "must be undefined to be structural",
  "x-kubernetes-validations": "must be empty to be structural",
} as const;
const forbiddenMessages = Object.entries(forbiddenInJunctors);

function checkNested(
  props: JsonSchemaProps,
  level: Level,
  path: string,
  exceptions: IntOrStringExceptions,
): readonly FieldError[] {
  if (isEmpty(props)) return none;
  const items = itemsOf(props);
  const specified = forbiddenMessages.filter(([name]) => isSpecified(name, props[name as keyof JsonSchemaProps]));
  return [
    ...checkValueRules(props, level, path, exceptions),
    ...(items === undefined ? [] : checkNested(items, level, child(path, "items"), {})),
    ...validateEach(propertiesOf(props), ([name, property]) =>
      checkNested(property, "field", key(child(path, "properties"), name), {}),
    ),
    ...specified.map(([name, why]) => forbiddenField(child(path, name), why)),
    ...(propertyOf(props, "metadata") === undefined
      ? []
      : [forbiddenField(key(child(path, "properties"), "metadata"), "must not be specified in a nested context")]),
  ];
}

/** Of the smallest schemas a request can contain tens of thousands. */
function isEmpty(props: JsonSchemaProps): boolean {
  for (const _ in props) return false;
  return true;
}

function isSpecified(name: string, value: unknown): boolean {
  if (value === undefined || value === "" || (Array.isArray(value) && value.length === 0)) return false;
  return value !== false || name === "additionalProperties" || name === "default";
}
