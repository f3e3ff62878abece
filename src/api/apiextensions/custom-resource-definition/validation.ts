/** Rules for CustomResourceDefinitions, in the order and with the messages of Kubernetes 1.33. */

import { list } from "../../../schema/define.ts";
import {
  errorsMax,
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  tooMany,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import type { Steps } from "../../../std/async/steps.ts";
import { validateImmutableField } from "../../meta/validation/immutable.ts";
import { dns1035Label, dns1123Subdomain } from "../../meta/validation/names.ts";
import { validateCaBundle } from "../../meta/validation/webhook-client.ts";
import { validateApproval } from "./approval.ts";
import { type ConversionValidationOptions, supportsReview, validateConversion } from "./conversion-validation.ts";
import { hasStatus, type InternalView, internalViewOf } from "./internal-view.ts";
import { validatePatternCosts } from "./pattern-costs.ts";
import {
  type CustomResourceDefinition,
  type CustomResourceDefinitionNames,
  type CustomResourceDefinitionSpec,
  customResourceDefinitionVersion,
} from "./schema.ts";
import { type SchemaOptions, validateSchema } from "./schema-validation.ts";
import {
  hasDefaults,
  hasExtensions,
  type SchemaValidationOptions,
  schemasOf,
  schemaValidationOptionsFrom,
  strictSchemaValidation,
} from "./validation-options.ts";
import {
  validateColumns,
  validateDeprecation,
  validateSelectableFields,
  validateSubresources,
} from "./version-validation.ts";

export function* validateDefinition(
  object: CustomResourceDefinition,
  previous?: CustomResourceDefinition,
): Steps<readonly FieldError[]> {
  const specErrors = yield* validateSpec(object.spec, previous);
  return [
    ...(previous === undefined ? validateName(object) : []),
    ...specErrors,
    ...(previous === undefined ? [] : validateSpecUpdate(object.spec, previous)),
    ...validateStatus(object),
    ...validateStoredVersions(object),
    ...validateApproval(object, previous),
    ...validatePreservation(object.spec, previous?.spec),
  ];
}

/** Validates the accepted names in the status. */
export function validateStatus(object: CustomResourceDefinition): readonly FieldError[] {
  const names = object.status?.acceptedNames;
  return names === undefined ? [] : validateNames(names, "status.acceptedNames");
}

function validateName({ metadata = {}, spec }: CustomResourceDefinition): readonly FieldError[] {
  const expected = `${spec.names.plural}.${spec.group}`;
  return (["generateName", "name"] as const).flatMap((member) => {
    const name = metadata[member] ?? "";
    if (name === "" || name === expected) return [];
    return [invalidField(`metadata.${member}`, name, 'must be spec.names.plural+"."+spec.group')];
  });
}

function* validateSpec(
  spec: CustomResourceDefinitionSpec,
  previous: CustomResourceDefinition | undefined,
): Steps<readonly FieldError[]> {
  const costs = [...validateVersionCount(spec, previous?.spec), ...validatePatternCosts(spec)];
  if (costs.length > 0) return costs;
  yield;
  const view = internalViewOf(spec);
  const requirements = yield* schemaValidationOptions(spec, previous?.spec);
  yield;
  const versionErrors = yield* validateVersions(spec, view, requirements, previous?.spec);
  const sharedErrors = yield* validateSharedFields(spec, view, requirements, previous?.spec);
  return [
    ...validateGroup(spec.group),
    ...validateScope(spec.scope),
    ...validatePresence(spec, previous?.spec),
    ...versionErrors,
    ...validateRequiredNames(spec.names),
    ...validateNames(spec.names, "spec.names"),
    ...sharedErrors,
    ...validateConversions(spec, previous),
  ];
}

/** Each version has ten operations in the OpenAPI documents, which are in memory as a whole. */
const VERSIONS_MAX = 500;

/** Kubernetes has no maximum. A stored definition with more versions may not grow. */
function validateVersionCount(
  { versions }: CustomResourceDefinitionSpec,
  previous: CustomResourceDefinitionSpec | undefined,
): readonly FieldError[] {
  const most = Math.max(VERSIONS_MAX, previous?.versions.length ?? 0);
  return versions.length <= most ? [] : [tooMany("spec.versions", versions.length, VERSIONS_MAX)];
}

function validateGroup(group: string): readonly FieldError[] {
  if (group === "") return [requiredField("spec.group")];
  const problems = dns1123Subdomain(group);
  if (problems.length > 0) return [invalidField("spec.group", group, problems.join(","))];
  return group.includes(".") ? [] : [invalidField("spec.group", group, "should be a domain with at least one dot")];
}

function validateScope(scope: string): readonly FieldError[] {
  if (scope === "") return [requiredField("spec.scope")];
  const scopes = ["Cluster", "Namespaced"];
  return scopes.includes(scope) ? [] : [notSupported("spec.scope", scope, scopes)];
}

/** Pruning, defaults and extensions require a structural schema, whatever the stored definition has. */
function* schemaValidationOptions(
  spec: CustomResourceDefinitionSpec,
  previous: CustomResourceDefinitionSpec | undefined,
): Steps<SchemaValidationOptions> {
  const requirements = previous === undefined ? strictSchemaValidation : yield* schemaValidationOptionsFrom(previous);
  yield;
  const prunes = spec.preserveUnknownFields !== true;
  const needed = prunes || schemasOf(spec).some((schema) => hasDefaults(schema) || hasExtensions(schema));
  return needed ? { ...requirements, requireStructural: true } : requirements;
}

function validatePresence(
  spec: CustomResourceDefinitionSpec,
  previous: CustomResourceDefinitionSpec | undefined,
): readonly FieldError[] {
  const prunes = spec.preserveUnknownFields !== true;
  const expected =
    previous === undefined || previous.versions.every(({ schema }) => schema?.openAPIV3Schema !== undefined);
  const errors = validateEach(spec.versions, ({ served, schema }, i) => {
    const field = `${index("spec.versions", i)}.schema.openAPIV3Schema`;
    if (schema?.openAPIV3Schema !== undefined) return [];
    if (expected) return [requiredField(field, "schemas are required")];
    return served && prunes ? [requiredField(field, "because otherwise all fields are pruned")] : [];
  });
  if (prunes || !schemasOf(spec).some(hasDefaults)) return errors;
  const why = "must be false in order to use defaults in the schema";
  return [...errors, invalidField("spec.preserveUnknownFields", true, why)];
}

function* validateVersions(
  spec: CustomResourceDefinitionSpec,
  { shared, versions }: InternalView,
  requirements: SchemaValidationOptions,
  previous: CustomResourceDefinitionSpec | undefined,
): Steps<readonly FieldError[]> {
  const errors: FieldError[] = [];
  for (const [i, { version, schema, subresources, columns, selectableFields }] of versions.entries()) {
    if (errors.length >= errorsMax) break;
    yield;
    const path = index("spec.versions", i);
    const options = { ...requirements, status: hasStatus(subresources ?? shared.subresources) };
    // Kubernetes' text. The schema is absent as well when all versions share it, but not the selectable fields.
    const absent = "selectableFields may only be set when version.schema.openAPIV3Schema is not included";
    const schemaOptions = markUnchangedSchemas(options, version.name, spec, previous);
    const schemaErrors = yield* validateSchema(schema, child(path, "schema"), schemaOptions);
    const found = [
      ...validateFieldName(child(path, "name"), version.name),
      ...validateDeprecation(version, path),
      ...schemaErrors,
      ...validateSubresources(subresources, child(path, "subresources")),
      ...validateColumns(columns, child(path, "additionalPrinterColumns")),
      ...validateSelectableFields(selectableFields, schema, child(path, "selectableFields"), absent),
    ];
    for (const error of found) errors.push(error);
  }
  const names = versions.map(({ version }) => version.name);
  if (new Set(names).size < names.length) {
    errors.push(
      invalidField(
        "spec.versions",
        goStruct(list(customResourceDefinitionVersion), spec.versions),
        "must contain unique version names",
      ),
    );
  }
  if (versions.filter(({ version }) => version.storage).length !== 1) {
    const why = "must have exactly one version marked as storage version";
    const shown = versions.length === 0 ? undefined : spec.versions;
    errors.push(invalidField("spec.versions", goStruct(list(customResourceDefinitionVersion), shown), why));
  }
  const [first = ""] = names;
  return first === "" ? errors : [...errors, ...validateFieldName("spec.version", first)];
}

function validateFieldName(field: string, name: string): readonly FieldError[] {
  const problems = dns1035Label(name);
  return problems.length === 0 ? [] : [invalidField(field, name, problems.join(","))];
}

/** Marks the versions whose schema is unchanged. */
function markUnchangedSchemas(
  options: SchemaOptions,
  name: string,
  spec: CustomResourceDefinitionSpec,
  previous: CustomResourceDefinitionSpec | undefined,
): SchemaOptions {
  return { ...options, unchanged: isUnchanged(name, spec, previous) };
}

function isUnchanged(
  name: string,
  spec: CustomResourceDefinitionSpec,
  previous: CustomResourceDefinitionSpec | undefined,
): boolean {
  if (previous === undefined) return false;
  const stored = previous.versions.find((version) => version.name === name);
  const next = spec.versions.find((version) => version.name === name);
  return stored !== undefined && deepEqual(stored.schema, next?.schema);
}

function validateRequiredNames(names: CustomResourceDefinitionNames): readonly FieldError[] {
  const required = ["plural", "singular", "kind", "listKind"] as const;
  return required.filter((name) => (names[name] ?? "") === "").map((name) => requiredField(`spec.names.${name}`));
}

function validateNames(names: CustomResourceDefinitionNames, path: string): readonly FieldError[] {
  const { plural, singular = "", kind, listKind = "", shortNames = [], categories = [] } = names;
  return [
    ...(plural === "" ? [] : validateFieldName(child(path, "plural"), plural)),
    ...(singular === "" ? [] : validateFieldName(child(path, "singular"), singular)),
    ...validateNameInAnyCase(child(path, "kind"), kind),
    ...validateNameInAnyCase(child(path, "listKind"), listKind),
    ...validateEach(shortNames, (name, i) => validateFieldName(index(child(path, "shortNames"), i), name)),
    ...(kind !== "" && kind === listKind
      ? [invalidField(child(path, "listKind"), listKind, "kind and listKind may not be the same")]
      : []),
    ...validateEach(categories, (name, i) => validateFieldName(index(child(path, "categories"), i), name)),
  ];
}

function validateNameInAnyCase(field: string, name: string): readonly FieldError[] {
  const problems = name === "" ? [] : dns1035Label(name.toLowerCase());
  if (problems.length === 0) return [];
  return [invalidField(field, name, `may have mixed case, but should otherwise match: ${problems.join(",")}`)];
}

/** The fields that all versions share. */
function* validateSharedFields(
  spec: CustomResourceDefinitionSpec,
  { shared, versions }: InternalView,
  requirements: SchemaValidationOptions,
  previous: CustomResourceDefinitionSpec | undefined,
): Steps<readonly FieldError[]> {
  const status = [shared, ...versions].some(({ subresources }) => hasStatus(subresources));
  const unchanged = versions.every(({ version }) => isUnchanged(version.name, spec, previous));
  const absent = "selectableFields may only be set when validations.schema is included";
  const schemaErrors = yield* validateSchema(shared.schema, "spec.validation", { ...requirements, status, unchanged });
  return [
    ...schemaErrors,
    ...validateSubresources(shared.subresources, "spec.subresources"),
    ...validateColumns(shared.columns, "spec.additionalPrinterColumns"),
    ...validateSelectableFields(shared.selectableFields, shared.schema, "spec.selectableFields", absent),
  ];
}

function validateConversions(
  spec: CustomResourceDefinitionSpec,
  previous: CustomResourceDefinition | undefined,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (spec.conversion !== undefined && spec.conversion.strategy !== "None" && spec.preserveUnknownFields === true) {
    const why = "must be None if spec.preserveUnknownFields is true";
    errors.push(invalidField("spec.conversion.strategy", spec.conversion.strategy, why));
  }
  return [...errors, ...validateConversion(spec.conversion, "spec.conversion", conversionOptions(previous))];
}

function conversionOptions(previous: CustomResourceDefinition | undefined): ConversionValidationOptions {
  const webhook = previous?.spec.conversion?.webhook;
  const versions = webhook?.conversionReviewVersions ?? [];
  const bundle = webhook?.clientConfig?.caBundle ?? "";
  return {
    requireReviewVersion: versions.length === 0 || supportsReview(versions),
    allowInvalidCaBundle:
      previous === undefined || !isEstablished(previous) || (bundle !== "" && validateCaBundle(bundle, "").length > 0),
  };
}

function isEstablished(object: CustomResourceDefinition): boolean {
  return object.status?.conditions?.find(({ type }) => type === "Established")?.status === "True";
}

function validateSpecUpdate(
  spec: CustomResourceDefinitionSpec,
  previous: CustomResourceDefinition,
): readonly FieldError[] {
  const { scope, names, group } = previous.spec;
  const inUse = isEstablished(previous)
    ? [
        ...validateImmutableField(spec.scope, scope, "spec.scope"),
        ...validateImmutableField(spec.names.kind, names.kind, "spec.names.kind"),
      ]
    : [];
  return [
    ...inUse,
    ...validateImmutableField(spec.group, group, "spec.group"),
    ...validateImmutableField(spec.names.plural, names.plural, "spec.names.plural"),
  ];
}

function validateStoredVersions({ spec, status }: CustomResourceDefinition): readonly FieldError[] {
  const path = "status.storedVersions";
  const stored = status?.storedVersions ?? [];
  if (stored.length === 0) return [invalidField(path, stored, "must have at least one stored version")];
  // Each stored version stands for one version of the definition.
  const left = new Set<string>(stored);
  const missing = spec.versions.filter(({ name, storage }) => !left.delete(name) && storage);
  const names = new Set(spec.versions.map(({ name }) => name));
  return [
    ...missing.map(({ name }) => invalidField(path, stored, `must have the storage version ${name}`)),
    ...validateEach(stored, (name, i) =>
      names.has(name) ? [] : [invalidField(index(path, i), name, storedVersionReason(name))],
    ),
  ];
}

function storedVersionReason(name: string): string {
  const until = `until a storage migration ensures no data remains persisted in ${name}`;
  const kept = `${name} was previously a storage version, and must remain in spec.versions ${until}`;
  return `missing from spec.versions; ${kept} and removes ${name} from status.storedVersions`;
}

/** `preserveUnknownFields: true` is rejected for new definitions. */
function validatePreservation(
  spec: CustomResourceDefinitionSpec,
  previous: CustomResourceDefinitionSpec | undefined,
): readonly FieldError[] {
  if (spec.preserveUnknownFields !== true || previous?.preserveUnknownFields === true) return [];
  const why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
  return [invalidField("spec.preserveUnknownFields", true, why)];
}
