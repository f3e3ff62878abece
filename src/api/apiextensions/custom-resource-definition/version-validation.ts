/** Rules for a version besides its schema: subresources, columns, selectable fields, deprecation. */
import type { JsonSchemaProps } from "../../../schema/structural/json-schema-props.ts";
import { followPath } from "../../../schema/structural/property-path.ts";
import {
  duplicateField,
  type FieldError,
  invalidField,
  requiredField,
  tooMany,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import type {
  CustomResourceColumnDefinition,
  CustomResourceDefinitionVersion,
  CustomResourceSubresources,
  SelectableField,
} from "./schema.ts";

const DEPRECATION_WARNING_MAX = 256;
const SELECTABLE_FIELDS_MAX = 8;

export function validateDeprecation(version: CustomResourceDefinitionVersion, path: string): readonly FieldError[] {
  const { deprecated = false, deprecationWarning: warning } = version;
  if (warning === undefined) return [];
  const problems: string[] = [];
  if (!deprecated) problems.push("can only be set for deprecated versions");
  else {
    if (Buffer.byteLength(warning) > DEPRECATION_WARNING_MAX) {
      problems.push(`must be <= ${DEPRECATION_WARNING_MAX} characters long`);
    }
    if (warning === "") problems.push("must not be an empty string");
    // Of all spaces only U+0020 is printable.
    const at = [...warning].findIndex((character) => /[\p{C}\p{Z}]/u.test(character) && character !== " ");
    if (at !== -1) {
      const before = Buffer.byteLength([...warning].slice(0, at).join(""));
      problems.push(`must only contain printable UTF-8 characters; non-printable character found at index ${before}`);
    }
  }
  return problems.map((problem) => invalidField(child(path, "deprecationWarning"), warning, problem));
}

export function validateSubresources(
  subresources: CustomResourceSubresources | undefined,
  path: string,
): readonly FieldError[] {
  const scale = subresources?.scale;
  if (scale === undefined) return [];
  const labels = scale.labelSelectorPath ?? "";
  return [
    ...validateReplicasPath(scale.specReplicasPath, child(path, "scale.specReplicasPath"), ".spec"),
    ...validateReplicasPath(scale.statusReplicasPath, child(path, "scale.statusReplicasPath"), ".status"),
    ...(labels === "" ? [] : validateLabelSelectorPath(labels, child(path, "scale.labelSelectorPath"))),
  ];
}

function validateReplicasPath(value: string, field: string, under: string): readonly FieldError[] {
  if (value === "") return [requiredField(field)];
  if (!value.startsWith(".")) return [pathSyntaxError(value, field)];
  return value.startsWith(`${under}.`) ? [] : [invalidField(field, value, `should be a json path under ${under}`)];
}

function validateLabelSelectorPath(value: string, field: string): readonly FieldError[] {
  if (!value.startsWith(".")) return [pathSyntaxError(value, field)];
  return /^\.(?:spec|status)\./.test(value)
    ? []
    : [invalidField(field, value, "should be a json path under either .spec or .status")];
}

function pathSyntaxError(value: string, field: string): FieldError {
  return invalidField(field, value, "must be a simple json path starting with .");
}

const columnTypes = ["boolean", "date", "integer", "number", "string"];
const columnFormats = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

export function validateColumns(
  columns: readonly CustomResourceColumnDefinition[] | undefined,
  path: string,
): readonly FieldError[] {
  return validateEach(columns ?? [], (column, i) => validateColumn(column, index(path, i)));
}

function validateColumn(column: CustomResourceColumnDefinition, path: string): readonly FieldError[] {
  const { name, type, format = "", jsonPath } = column;
  const errors: FieldError[] = [];
  const oneOf = (texts: readonly string[]): string => `must be one of ${texts.join(",")}`;
  if (name === "") errors.push(requiredField(child(path, "name")));
  if (type === "") errors.push(requiredField(child(path, "type"), oneOf(columnTypes)));
  else if (!columnTypes.includes(type)) errors.push(invalidField(child(path, "type"), type, oneOf(columnTypes)));
  if (format !== "" && !columnFormats.includes(format)) {
    errors.push(invalidField(child(path, "format"), format, oneOf(columnFormats)));
  }
  if (jsonPath === "") errors.push(requiredField(child(path, "JSONPath")));
  else if (!jsonPath.startsWith(".")) errors.push(pathSyntaxError(jsonPath, child(path, "JSONPath")));
  return errors;
}

const selectableTypes = new Set(["string", "boolean", "integer"]);

export function validateSelectableFields(
  fields: readonly SelectableField[] | undefined,
  schema: JsonSchemaProps | undefined,
  path: string,
  absent: string,
): readonly FieldError[] {
  if (fields === undefined || fields.length === 0) return [];
  if (schema === undefined) return [invalidField(path, "", absent)];
  const seen = new Set<string>();
  const errors = validateEach(fields, ({ jsonPath }, i) =>
    validateSelectableField(jsonPath, schema, child(index(path, i), "jsonPath"), seen),
  );
  return seen.size > SELECTABLE_FIELDS_MAX ? [...errors, tooMany(path, seen.size, SELECTABLE_FIELDS_MAX)] : errors;
}

function validateSelectableField(
  jsonPath: string,
  root: JsonSchemaProps,
  field: string,
  seen: Set<string>,
): readonly FieldError[] {
  if (jsonPath === "") return [requiredField(field)];
  const found = followPath(jsonPath, root, { brackets: false });
  if (found.problem !== undefined) return [invalidField(field, jsonPath, `is an invalid path: ${found.problem}`)];
  const errors: FieldError[] = [];
  if (found.steps[0] === "metadata") {
    errors.push(invalidField(field, jsonPath, "must not point to fields in metadata"));
  }
  if (!selectableTypes.has(found.schema.type ?? "")) {
    const why =
      "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
    errors.push(invalidField(field, jsonPath, why));
  }
  const location = found.steps.join(".");
  if (seen.has(location)) errors.push(duplicateField(field, jsonPath));
  seen.add(location);
  return errors;
}
