/**
 * Options of schema validation. Rules were added over time: an update may keep the violations of the stored definition.
 */
import { validateDefaults } from "../../../schema/structural/defaults.ts";
import { validateStructural } from "../../../schema/structural/invariants.ts";
import { type JsonSchemaProps, someSubschema } from "../../../schema/structural/json-schema-props.ts";
import { validateListMapKeys, validateSetItems } from "../../../schema/structural/list-keywords.ts";
import type { Steps } from "../../../std/async/steps.ts";
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
export function* schemaValidationOptionsFrom(previous: CustomResourceDefinitionSpec): Steps<SchemaValidationOptions> {
  const roots = schemasOf(previous);
  const holds = (finds: (props: JsonSchemaProps) => boolean): boolean =>
    !roots.some((root) => someSubschema(root, finds));
  let requireStructural = true;
  for (const root of roots) {
    yield;
    requireStructural &&= (yield* validateStructural(root, "")).length === 0;
  }
  yield;
  const requirePruned = requireStructural && !(yield* haveUnprunedDefaults(roots));
  yield;
  let stored: ReadonlySet<string> | undefined;
  return {
    requireStructural,
    requirePruned,
    requireValidTypes: holds(({ type = "" }) => type !== "" && !knownTypes.has(type)),
    requireAtomicSetItems: holds((props) => validateSetItems(props, "").length > 0),
    requireMapKeys: holds((props) => validateListMapKeys(props, "").length > 0),
    isStoredExpression: (expression) => {
      stored ??= expressionsOf(roots);
      return stored.has(expression);
    },
  };
}

/** The schemas of all versions that have one. */
export function schemasOf(spec: CustomResourceDefinitionSpec): readonly JsonSchemaProps[] {
  return spec.versions.flatMap(({ schema }) => schema?.openAPIV3Schema ?? []);
}

function expressionsOf(roots: readonly JsonSchemaProps[]): ReadonlySet<string> {
  const expressions = new Set<string>();
  const collect = (props: JsonSchemaProps): false => {
    for (const { rule, messageExpression = "" } of props["x-kubernetes-validations"] ?? []) {
      expressions.add(rule).add(messageExpression);
    }
    return false;
  };
  for (const root of roots) someSubschema(root, collect);
  return expressions;
}

const knownTypes = new Set(["array", "boolean", "integer", "number", "object", "string"]);

function* haveUnprunedDefaults(roots: readonly JsonSchemaProps[]): Steps<boolean> {
  for (const root of roots) {
    const errors = yield* validateDefaults(root, "", { name: "", metadata: objectMeta });
    if (errors.some(({ detail }) => detail === "must not have unknown fields")) return true;
  }
  return false;
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
