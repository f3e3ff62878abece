/** Validates defaults: they must be pruned, valid, and result in valid metadata. */
import type { Steps } from "../../std/async/steps.ts";
import { decode } from "../decode/decode.ts";
import type { Schema } from "../schema.ts";
import {
  type FieldError,
  invalidField,
  renderFieldError,
  unstructured,
  validateEachInSteps,
} from "../validation/field-error.ts";
import { validate } from "../validation/validate.ts";
import { child, key } from "../value/field-path.ts";
import { type ConvertOptions, convertPart } from "./convert.ts";
import { itemsOf, type JsonSchemaProps, propertiesOf } from "./json-schema-props.ts";

export interface DefaultsOptions extends ConvertOptions {
  /** Rejects defaults with unknown fields; true when absent. */
  readonly requirePruned?: boolean;
  /** Validates the embedded resources in a value. */
  readonly validateResources?: ValueValidator;
  /** Evaluates the CEL rules of a value that is otherwise valid. */
  readonly validateExpressions?: (schema: Schema, value: unknown, field: string) => Steps<readonly FieldError[]>;
}

type ValueValidator = (schema: Schema, value: unknown, field: string) => readonly FieldError[];

/** Skips `additionalProperties`, as Kubernetes does. */
export function validateDefaults(
  root: JsonSchemaProps,
  path: string,
  options: DefaultsOptions,
): Steps<readonly FieldError[]> {
  return validatePart(root, path, options, undefined);
}

/** The resource whose `apiVersion`, `kind` or `metadata` contains the default; `wrap` builds it around the value. */
interface EnclosingResource {
  readonly schema: JsonSchemaProps;
  readonly wrap: (value: unknown) => unknown;
}

const resourceMembers = new Set(["apiVersion", "kind", "metadata"]);

function* validatePart(
  props: JsonSchemaProps,
  path: string,
  options: DefaultsOptions,
  inside: EnclosingResource | undefined,
): Steps<readonly FieldError[]> {
  const embedded = props["x-kubernetes-embedded-resource"] === true;
  const surroundings = embedded ? undefined : inside;
  const items = itemsOf(props);
  const wrapItem = (item: unknown): unknown => [item];
  return [
    ...(yield* validateDefault(props, child(path, "default"), options, surroundings)),
    ...(items === undefined
      ? []
      : yield* validatePart(items, child(path, "items"), options, wrapFurther(surroundings, wrapItem))),
    ...(yield* validateEachInSteps(propertiesOf(props), ([name, property]) => {
      const member = (value: unknown): unknown => ({ [name]: value });
      const next =
        embedded && resourceMembers.has(name)
          ? { schema: props, wrap: (value: unknown) => ({ ...validationTypeMeta, [name]: value }) }
          : wrapFurther(surroundings, member);
      return validatePart(property, key(child(path, "properties"), name), options, next);
    })),
  ];
}

const validationTypeMeta = { apiVersion: "validation/v1", kind: "Validation" };

function wrapFurther(
  surroundings: EnclosingResource | undefined,
  wrap: (value: unknown) => unknown,
): EnclosingResource | undefined {
  if (surroundings === undefined) return undefined;
  return { schema: surroundings.schema, wrap: (value) => surroundings.wrap(wrap(value)) };
}

function* validateDefault(
  props: JsonSchemaProps,
  field: string,
  options: DefaultsOptions,
  surroundings: EnclosingResource | undefined,
): Steps<readonly FieldError[]> {
  const value = props.default;
  if (value === undefined) return [];
  const schema = convertPart(props, options);
  const found =
    surroundings === undefined
      ? validateFreeDefault(schema, value, field, options)
      : validateDefaultInResource(surroundings, value, field, options);
  const pruned = surroundings === undefined ? validatePruned(schema, value, field, options) : [];
  const errors = found.length > 0 ? found : validate(schema, value, field);
  if (errors.length > 0 || options.validateExpressions === undefined) return [...pruned, ...errors];
  return [...pruned, ...(yield* options.validateExpressions(schema, value, field))];
}

function validatePruned(
  schema: Schema,
  value: unknown,
  field: string,
  { requirePruned = true }: DefaultsOptions,
): readonly FieldError[] {
  const { unknown } = decode(schema, value);
  if (unknown.length === 0 || !requirePruned) return [];
  return [invalidField(field, unstructured(value), "must not have unknown fields")];
}

function validateFreeDefault(
  schema: Schema,
  value: unknown,
  field: string,
  { validateResources }: DefaultsOptions,
): readonly FieldError[] {
  const [first] = decode(schema, value).errors;
  if (first !== undefined) return [invalidField(field, unstructured(value), first.message)];
  return validateResources?.(schema, value, field) ?? [];
}

function validateDefaultInResource(
  { schema, wrap }: EnclosingResource,
  value: unknown,
  field: string,
  options: DefaultsOptions,
): readonly FieldError[] {
  const resource = convertPart(schema, options);
  const { value: read, errors } = decode(resource, wrap(value));
  const found = options.validateResources?.(resource, read, "") ?? [];
  const why = errors[0]?.message ?? found.map((error) => `${error.field}: ${renderFieldError(error)}`).join(", ");
  return why === "" ? [] : [invalidField(field, unstructured(value), `must result in valid metadata: ${why}`)];
}
