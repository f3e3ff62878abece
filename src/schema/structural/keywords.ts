/** Validates the keywords of a CustomResourceDefinition's schema, structural or not. */
import type { Steps } from "../../std/async/steps.ts";
import {
  errorsMax,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
} from "../validation/field-error.ts";
import { child, index, key } from "../value/field-path.ts";
import { itemsOf, type JsonSchemaProps, propertiesOf, someSubschema, valuesOf } from "./json-schema-props.ts";
import { checkListType, validateListMapKeys, validateSetItems } from "./list-keywords.ts";
import { checkValidations } from "./validation-keywords.ts";

export interface KeywordOptions {
  /** Checks the CEL rules of schemas whose keywords, and those of all subschemas, are valid. */
  readonly expressions?: ExpressionChecker;
  readonly requireValidTypes?: boolean;
  readonly requireAtomicSetItems?: boolean;
  readonly requireMapKeys?: boolean;
}

/** Follows the traversal of the schema, since the cost of a rule depends on the lists around it. */
export interface ExpressionChecker {
  check(props: JsonSchemaProps, path: string, uncorrelatable: string | undefined): readonly FieldError[];
  /** The checker for the subschemas of a schema. */
  enter(props: JsonSchemaProps, path: string, into: "properties" | "values" | "items"): ExpressionChecker;
}

interface WalkContext {
  /** The reason why defaults are not allowed here. */
  readonly noDefaults?: string;
  readonly insideMetadata?: boolean;
  /** The path of an enclosing list or map whose members cannot be correlated across updates. */
  readonly uncorrelatable?: string;
  readonly expressions?: ExpressionChecker | undefined;
}

/** Yields before each schema with CEL rules, which take long to compile. Stops at about a hundred errors. */
export function* validateKeywords(
  root: JsonSchemaProps,
  path: string,
  options: KeywordOptions,
): Steps<readonly FieldError[]> {
  const walker = new Walker(options);
  walker.walk(root, path, { expressions: options.expressions }, true);
  const errors = walker.schemaErrors;
  for (const check of walker.expressionChecks) {
    if (errors.length >= errorsMax) break;
    yield;
    for (const error of check()) errors.push(error);
  }
  return errors;
}

const types = ["array", "boolean", "integer", "number", "object", "string"] as const;
const knownTypes = new Set<string>(types);
const resourceMembers = new Set(["apiVersion", "kind", "metadata"]);

class Walker {
  readonly schemaErrors: FieldError[] = [];
  /** Of CEL rules, in the order of the schema. */
  readonly expressionChecks: (() => readonly FieldError[])[] = [];
  readonly #options: KeywordOptions;

  constructor(options: KeywordOptions) {
    this.#options = options;
  }

  walk(props: JsonSchemaProps, path: string, context: WalkContext, root = false): void {
    const before = this.schemaErrors.length;
    if (before >= errorsMax) return;
    this.schemaErrors.push(...checkPart(props, path, context, this.#options));
    this.#walkMembers(props, path, context, root);
    this.#walkJunctions(props, path, context);
    this.#walkItems(props, path, context);
    this.schemaErrors.push(...checkExtensions(props, path, this.#options), ...checkValidations(props, path));
    const rules = props["x-kubernetes-validations"] ?? [];
    const { expressions, uncorrelatable } = context;
    if (rules.length === 0 || this.schemaErrors.length > before || expressions === undefined) return;
    this.expressionChecks.push(() => expressions.check(props, path, uncorrelatable));
  }

  #walkMembers(props: JsonSchemaProps, path: string, context: WalkContext, root: boolean): void {
    const values = valuesOf(props);
    if (values !== undefined) {
      const noDefaults = "inside additionalProperties applying to object metadata";
      const expressions = context.expressions?.enter(props, path, "values");
      const next =
        context.insideMetadata === true ? { ...context, noDefaults, expressions } : { ...context, expressions };
      this.walk(values, child(path, "additionalProperties"), next);
    }
    const resource = root || props["x-kubernetes-embedded-resource"] === true;
    for (const [name, property] of propertiesOf(props)) {
      const inMetadata = resource && resourceMembers.has(name);
      this.walk(property, key(child(path, "properties"), name), {
        ...context,
        ...(inMetadata ? { insideMetadata: true } : {}),
        ...(inMetadata && root ? { noDefaults: `in top-level ${name}` } : {}),
        expressions: context.expressions?.enter(props, path, "properties"),
      });
    }
  }

  #walkJunctions(props: JsonSchemaProps, path: string, context: WalkContext): void {
    const inside = { ...context, expressions: undefined };
    if (props.not !== undefined) this.walk(props.not, child(path, "not"), inside);
    for (const name of ["allOf", "oneOf", "anyOf"] as const) {
      for (const [i, nested] of (props[name] ?? []).entries()) this.walk(nested, index(child(path, name), i), inside);
    }
    for (const [name, nested] of Object.entries(props.definitions ?? {})) {
      this.walk(nested, key(child(path, "definitions"), name), inside);
    }
    for (const [name, nested] of Object.entries(props.dependencies ?? {})) {
      if (Array.isArray(nested)) continue;
      this.walk(nested as JsonSchemaProps, key(child(path, "dependencies"), name), inside);
    }
  }

  #walkItems(props: JsonSchemaProps, path: string, context: WalkContext): void {
    const next = props["x-kubernetes-list-type"] === "map" ? context : { ...context, uncorrelatable: path };
    const items = itemsOf(props);
    if (items !== undefined) {
      this.walk(items, child(path, "items"), {
        ...next,
        expressions: context.expressions?.enter(props, path, "items"),
      });
    }
    for (const [i, nested] of (Array.isArray(props.items) ? props.items : []).entries()) {
      this.walk(nested, index(child(path, "items"), i), { ...next, expressions: undefined });
    }
  }
}

const unsupportedKeywords = [
  "id",
  "additionalItems",
  "patternProperties",
  "definitions",
  "dependencies",
  "$ref",
] as const;

function checkPart(
  props: JsonSchemaProps,
  path: string,
  context: WalkContext,
  { requireValidTypes = true }: KeywordOptions,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  const forbid = (name: string, why: string): void => {
    errors.push(forbiddenField(child(path, name), why));
  };
  const { type = "" } = props;
  if (requireValidTypes && type !== "" && !knownTypes.has(type)) {
    errors.push(notSupported(child(path, "type"), type, types));
  }
  if (props.default !== undefined && context.noDefaults !== undefined) {
    forbid("default", `must not be set ${context.noDefaults}`);
  }
  for (const name of unsupportedKeywords) if (isSpecified(props[name])) forbid(name, `${name} is not supported`);
  if (type === "null") forbid("type", "type cannot be set to null, use nullable as an alternative");
  if (Array.isArray(props.items) && props.items.length > 0)
    forbid("items", "items must be a schema object and not an array");
  if (context.insideMetadata === true && props["x-kubernetes-embedded-resource"] === true) {
    forbid("x-kubernetes-embedded-resource", "must not be used inside of resource meta");
  }
  if (props.uniqueItems === true) {
    forbid("uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
  }
  const { additionalProperties } = props;
  if (propertiesOf(props).length > 0 && additionalProperties !== undefined && additionalProperties !== true) {
    forbid("additionalProperties", "additionalProperties and properties are mutual exclusive");
  }
  return errors;
}

/** Whether the schema has keywords that structural schemas cannot represent. */
export function usesUnsupportedKeywords(root: JsonSchemaProps): boolean {
  return someSubschema(
    root,
    (props) =>
      unsupportedKeywords.some((name) => isSpecified(props[name])) ||
      (Array.isArray(props.items) && props.items.length > 0) ||
      props["x-kubernetes-preserve-unknown-fields"] === false,
  );
}

function isSpecified(value: unknown): boolean {
  if (value === undefined || value === "") return false;
  return typeof value !== "object" || value === null || Object.keys(value).length > 0;
}

function checkExtensions(props: JsonSchemaProps, path: string, options: KeywordOptions): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (props["x-kubernetes-preserve-unknown-fields"] === false) {
    const field = child(path, "x-kubernetes-preserve-unknown-fields");
    errors.push(invalidField(field, false, "must be true or undefined"));
  }
  const mapType = props["x-kubernetes-map-type"];
  if (mapType !== undefined && props.type !== "object") {
    errors.push(wrongTypeError(props, path, "must be object if x-kubernetes-map-type is specified"));
  }
  if (mapType !== undefined && mapType !== "atomic" && mapType !== "granular") {
    errors.push(notSupported(child(path, "x-kubernetes-map-type"), mapType, ["atomic", "granular"]));
  }
  if (props["x-kubernetes-list-type"] !== undefined && props.type !== "array") {
    errors.push(wrongTypeError(props, path, "must be array if x-kubernetes-list-type is specified"));
  } else if (options.requireAtomicSetItems !== false) errors.push(...validateSetItems(props, path));
  errors.push(...checkListType(props, path));
  if (options.requireMapKeys !== false) errors.push(...validateListMapKeys(props, path));
  return errors;
}

function wrongTypeError(props: JsonSchemaProps, path: string, why: string): FieldError {
  const field = child(path, "type");
  return (props.type ?? "") === "" ? requiredField(field, why) : invalidField(field, props.type, why);
}
