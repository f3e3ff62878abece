/**
 * Options of schema validation. Rules were added over time: an update may keep the violations of the stored definition.
 */
import { validateDefaults } from "../../../schema/structural/defaults.ts";
import { validateStructural } from "../../../schema/structural/invariants.ts";
import { type JsonSchemaProps, someSubschema } from "../../../schema/structural/json-schema-props.ts";
import { validateListMapKeys, validateSetItems } from "../../../schema/structural/list-keywords.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import type { RuleCompileOptions } from "../custom-resource/rules.ts";
import type { CustomResourceDefinitionSpec } from "./schema.ts";

export interface SchemaValidationOptions {
  readonly requireStructural: boolean;
  readonly requirePruned: boolean;
  readonly requireValidTypes: boolean;
  readonly requireAtomicSetItems: boolean;
  readonly requireMapKeys: boolean;
  /** Whether the expression is stored already. Only stored expressions may use features of a newer CEL version. */
  readonly isStoredExpression: NonNullable<RuleCompileOptions["isStoredExpression"]>;
}

export const strictSchemaValidation: SchemaValidationOptions = {
  requireStructural: true,
  requirePruned: true,
  requireValidTypes: true,
  requireAtomicSetItems: true,
  requireMapKeys: true,
  isStoredExpression: () => false,
};

/** The options for an update: no rule that the stored definition violates. */
export function schemaValidationOptionsFrom(previous: CustomResourceDefinitionSpec): SchemaValidationOptions {
  const roots = previous.versions.flatMap(({ schema }) => schema?.openAPIV3Schema ?? []);
  const holds = (finds: (props: JsonSchemaProps) => boolean): boolean =>
    !roots.some((root) => someSubschema(root, finds));
  const structural = !roots.some((root) => validateStructural(root, "").length > 0);
  return {
    requireStructural: structural,
    requirePruned: structural && !roots.some(hasUnprunedDefaults),
    requireValidTypes: holds(({ type = "" }) => type !== "" && !knownTypes.has(type)),
    requireAtomicSetItems: holds((props) => validateSetItems(props, "").length > 0),
    requireMapKeys: holds((props) => validateListMapKeys(props, "").length > 0),
    isStoredExpression: (expression) =>
      roots.some((root) => someSubschema(root, (props) => hasExpression(props, expression))),
  };
}

function hasExpression(props: JsonSchemaProps, expression: string): boolean {
  const rules = props["x-kubernetes-validations"] ?? [];
  return rules.some(({ rule, messageExpression }) => rule === expression || messageExpression === expression);
}

const knownTypes = new Set(["array", "boolean", "integer", "number", "object", "string"]);

function hasUnprunedDefaults(root: JsonSchemaProps): boolean {
  const errors = validateDefaults(root, "", { name: "", metadata: objectMeta });
  return errors.some(({ detail }) => detail === "must not have unknown fields");
}

export function hasDefaults(root: JsonSchemaProps): boolean {
  return someSubschema(root, (props) => props.default !== undefined);
}

/** Extensions that require a structural schema. */
export function hasExtensions(root: JsonSchemaProps): boolean {
  return someSubschema(root, (props) =>
    Object.entries(props).some(
      ([name, value]) => name.startsWith("x-kubernetes-") && value !== undefined && value !== false,
    ),
  );
}
