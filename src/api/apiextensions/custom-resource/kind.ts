/**
 * The kind of a custom resource, one for each version of its definition:
 *
 *     const kind = createCustomKind(definition, "v1");
 *     scheme.register(kind);
 *
 * The schema prunes, defaults and validates; the strategy evaluates the CEL rules. Objects of other versions than the
 * storage version are converted by replacing apiVersion, or by a `converter` where the definition has a webhook.
 */
import { decode } from "../../../schema/decode/decode.ts";
import { applyStoredDefaults } from "../../../schema/defaults.ts";
import type { ObjectSchema } from "../../../schema/schema.ts";
import { convertResource } from "../../../schema/structural/convert.ts";
import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { validateWithRatcheting } from "../../../schema/validation/ratcheting.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import type { Steps } from "../../../std/async/steps.ts";
import { type ApiObject, allVerbs, type Converter, type Kind, type Strategy, type Subresource } from "../../kind.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { svcGroup } from "../../scheme.ts";
import {
  dropStatus,
  keepStatus,
  replaceStatusOnly,
  setFirstGeneration,
  statusSubresource,
  updateGeneration,
} from "../../strategy.ts";
import { compareVersions } from "../../version-order.ts";
import type {
  CustomResourceDefinition,
  CustomResourceDefinitionNames,
  CustomResourceDefinitionVersion,
  CustomResourceSubresourceScale,
} from "../custom-resource-definition/schema.ts";
import { createCustomColumns, createSelectableFields } from "./columns.ts";
import { validateEmbedded } from "./embedded-resources.ts";
import { evaluateRules, hasRules, type RuleObserver } from "./rule-evaluation.ts";
import { createCustomScale, validateCustomScale } from "./scale.ts";
import { finalizerWarnings } from "./warnings.ts";

/** Throws a `RangeError` when the definition has no such version. */
export function createCustomKind(
  definition: CustomResourceDefinition,
  versionName: string,
  converter?: Converter,
  observer?: RuleObserver,
): Kind {
  const { spec } = definition;
  const version = spec.versions.find(({ name }) => name === versionName);
  if (version === undefined) throw new RangeError(`${definition.metadata?.name} has no version ${versionName}`);
  const names = namesOf(definition);
  const lazy = new LazySchema(definition, version);
  const identity = { apiVersion: `${spec.group}/${version.name}`, kind: names.kind };
  const rules: ObjectRules = {
    get schema() {
      return lazy.schema;
    },
    identity,
    scale: version.subresources?.scale,
    observer,
    warnings: new WeakMap<ApiObject, readonly string[]>(),
  };
  return {
    group: svcGroup(spec.group),
    version: version.name,
    kind: names.kind,
    listKind: names.listKind || `${names.kind}List`,
    plural: names.plural,
    singular: names.singular || names.kind.toLowerCase(),
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    namespaced: spec.scope === "Namespaced",
    verbs: allVerbs,
    subresources: subresourcesOf(names.kind, version, rules),
    storageName: `${spec.group}/${names.plural}`,
    get schema() {
      return lazy.schema;
    },
    columns: createCustomColumns(version.additionalPrinterColumns),
    selectableFields: createSelectableFields(version.selectableFields),
    allowsAnyFinalizer: true,
    strategy: strategyOf(version, rules),
    ...deprecationOf(definition, version),
    ...(converter === undefined ? conversionOf(definition, version, rules) : { converter }),
    custom: true,
    definedGroup: spec.group,
    ...structuralSchemaOf(spec, version),
  };
}

/** Uses the accepted names: a conflicting name in the spec is not accepted, one accepted before is kept. */
function namesOf({ spec, status }: CustomResourceDefinition): CustomResourceDefinitionNames {
  const accepted = status?.acceptedNames;
  return accepted === undefined || accepted.plural === "" ? spec.names : accepted;
}

/** Converts the schema at its first use: many defined kinds are never used. */
class LazySchema {
  readonly #definition: CustomResourceDefinition;
  readonly #version: CustomResourceDefinitionVersion;
  #schema: ObjectSchema | undefined;

  constructor(definition: CustomResourceDefinition, version: CustomResourceDefinitionVersion) {
    this.#definition = definition;
    this.#version = version;
  }

  get schema(): ObjectSchema {
    this.#schema ??= schemaOf(this.#definition, this.#version);
    return this.#schema;
  }
}

function schemaOf({ spec }: CustomResourceDefinition, version: CustomResourceDefinitionVersion): ObjectSchema {
  const name = `${spec.group}/${version.name}.${spec.names.kind}`;
  const props = version.schema?.openAPIV3Schema ?? { type: "object" };
  const schema = convertResource(props, { name, metadata: objectMeta });
  return spec.preserveUnknownFields === true ? { ...schema, preserveUnknown: true } : schema;
}

function structuralSchemaOf(
  { preserveUnknownFields }: CustomResourceDefinition["spec"],
  { schema }: CustomResourceDefinitionVersion,
): Pick<Kind, "structuralSchema"> {
  const props = schema?.openAPIV3Schema;
  return props === undefined || preserveUnknownFields === true ? {} : { structuralSchema: props };
}

function deprecationOf(
  { spec }: CustomResourceDefinition,
  { deprecated = false, deprecationWarning, name }: CustomResourceDefinitionVersion,
): Pick<Kind, "deprecation"> {
  if (!deprecated) return {};
  return { deprecation: deprecationWarning ?? defaultDeprecation(spec, name) };
}

/** Names the newest version that is served and not deprecated, if it is newer. */
function defaultDeprecation({ group, names, versions }: CustomResourceDefinition["spec"], version: string): string {
  const others = versions.filter(({ served, deprecated }) => served && deprecated !== true).map(({ name }) => name);
  const [newest] = others.sort(compareVersions);
  const warning = `${group}/${version} ${names.kind} is deprecated`;
  if (newest === undefined || compareVersions(newest, version) >= 0) return warning;
  return `${warning}; use ${group}/${newest} ${names.kind}`;
}

function conversionOf(
  definition: CustomResourceDefinition,
  version: CustomResourceDefinitionVersion,
  rules: ObjectRules,
): Pick<Kind, "conversion"> {
  const storage = definition.spec.versions.find((each) => each.storage);
  if (version.storage || storage === undefined) return {};
  let stored: Kind | undefined;
  return {
    conversion: {
      get storageKind() {
        stored ??= createCustomKind(definition, storage.name);
        return stored;
      },
      toStorage: (object) => object,
      // The other version may have fewer fields and other defaults.
      fromStorage: (object) =>
        applyStoredDefaults(rules.schema, decode(rules.schema, object, { unknownFields: "drop" }).value) as ApiObject,
    },
  };
}

/** The rules for objects of the kind. */
interface ObjectRules {
  readonly schema: ObjectSchema;
  /** Objects in memory lack kind and apiVersion, which expressions may read. */
  readonly identity: Required<Pick<ApiObject, "apiVersion" | "kind">>;
  readonly scale: CustomResourceSubresourceScale | undefined;
  readonly observer: RuleObserver | undefined;
  /** Of validated objects: errors of unchanged values, so that the rules are not evaluated again for them. */
  readonly warnings: WeakMap<ApiObject, readonly string[]>;
}

function subresourcesOf(
  kind: string,
  { subresources }: CustomResourceDefinitionVersion,
  rules: ObjectRules,
): readonly Subresource[] {
  const status = statusSubresource(kind, {
    prepareForUpdate: replaceStatusOnly,
    validateUpdateInSteps: (next, previous) => validateObject(rules, next, previous),
    warnings: (next) => rules.warnings.get(next) ?? [],
  });
  return [
    ...(subresources?.status === undefined ? [] : [status]),
    ...(subresources?.scale === undefined ? [] : [createCustomScale(subresources.scale)]),
  ];
}

function strategyOf({ subresources }: CustomResourceDefinitionVersion, rules: ObjectRules): Strategy<ApiObject> {
  const hasStatus = subresources?.status !== undefined;
  return {
    prepareForCreate: (object) => setFirstGeneration(hasStatus ? dropStatus(object) : object),
    prepareForUpdate: (next, previous) => {
      const kept = hasStatus ? keepStatus(next, previous) : next;
      return updateGeneration(kept, previous, !deepEqual(contentOf(kept), contentOf(previous)));
    },
    validateInSteps: (object, previous) => validateObject(rules, object, previous),
    warnings: (object, previous) => [...finalizerWarnings(object, previous), ...(rules.warnings.get(object) ?? [])],
    // Applies defaults that were added to the schema after the object was stored.
    afterDecode: (object) => applyStoredDefaults(rules.schema, object),
    allowUnconditionalUpdate: false,
  };
}

function contentOf({ metadata: _, kind: __, apiVersion: ___, ...content }: ApiObject): unknown {
  return content;
}

/** Rules beyond the schema. CEL rules are evaluated last, and only for objects that are otherwise valid. */
function* validateObject(
  rules: ObjectRules,
  object: ApiObject,
  previous: ApiObject | undefined,
): Steps<readonly FieldError[]> {
  const errors = [
    ...(rules.scale === undefined ? [] : validateCustomScale(object, rules.scale)),
    ...validateEmbedded(rules.schema, object),
  ];
  if (!hasRules(rules.schema)) return errors;
  const found = [...validateWithRatcheting(rules.schema, object, previous), ...errors];
  if (!found.some(({ type }) => blockingErrorTypes.has(type)))
    return [...errors, ...(yield* evaluateObjectRules(rules, object, previous))];
  const why =
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
  return [...errors, invalidField("<nil>", null, why)];
}

/** Errors after which CEL rules are not evaluated: they would fail for the same reason. */
const blockingErrorTypes = new Set([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
]);

function* evaluateObjectRules(
  { schema, identity, observer, warnings }: ObjectRules,
  object: ApiObject,
  previous: ApiObject | undefined,
): Steps<readonly FieldError[]> {
  const old = previous === undefined ? undefined : { ...previous, ...identity };
  const ratchet = old !== undefined;
  const options = { old, resourceRoot: true, ratchet, observer };
  const found = yield* evaluateRules(schema, { ...object, ...identity }, options);
  if (found.warnings.length > 0) warnings.set(object, found.warnings);
  return found.errors;
}
