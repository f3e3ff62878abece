/** Rules for quotas: countable resources, and the scopes that apply to them. */
import {
  type BadValue,
  errorsMax,
  type FieldError,
  invalidField,
  invalidUnquoted,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { child, key } from "../../../schema/value/field-path.ts";
import { isStandardResource, validateResourceName } from "../resources/names.ts";
import type { ResourceList } from "../resources/schema.ts";
import { validateResourceQuantity } from "../resources/validation.ts";
import {
  type ResourceQuota,
  type ResourceQuotaSpec,
  type ScopedResourceSelectorRequirement,
  scopeSelector as scopeSelectorSchema,
} from "./schema.ts";

export function validateResourceQuota({ spec = {}, status }: ResourceQuota): readonly FieldError[] {
  return [
    ...validateQuantities(spec.hard, "spec.hard"),
    ...validateScopes(spec, "spec.scopes"),
    ...validateSelector(spec, "spec.scopeSelector.matchExpressions"),
    ...validateQuantities(status?.hard, "status.hard"),
    ...validateQuantities(status?.used, "status.used"),
  ];
}

export function validateResourceQuotaUpdate(next: ResourceQuota, previous: ResourceQuota): readonly FieldError[] {
  const [is, was] = [new Set(next.spec?.scopes), new Set(previous.spec?.scopes)];
  if (is.size === was.size && [...is].every((scope) => was.has(scope))) return [];
  return [invalidField("spec.scopes", next.spec?.scopes ?? [], "field is immutable")];
}

export function validateResourceQuotaStatusUpdate({ status }: ResourceQuota): readonly FieldError[] {
  return [...validateQuantities(status?.hard, "status.hard"), ...validateQuantities(status?.used, "status.used")];
}

function validateQuantities(list: ResourceList | undefined, path: string): readonly FieldError[] {
  return validateEach(Object.entries(list ?? {}), ([name, amount]) => {
    const at = key(path, name);
    const countable = name.includes("/") || isForQuotas(name);
    return [
      ...validateResourceName(name, at),
      ...(countable ? [] : [invalidUnquoted(at, name, "must be a standard resource for quota")]),
      ...validateResourceQuantity(name, amount, at),
    ];
  });
}

function isForQuotas(name: string): boolean {
  return name !== "storage" && isStandardResource(name);
}

const COMPUTE = ["pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/** The resources that a scope applies to. */
const scopes: Readonly<Record<string, readonly string[]>> = {
  Terminating: COMPUTE,
  NotTerminating: COMPUTE,
  BestEffort: ["pods"],
  NotBestEffort: COMPUTE,
  PriorityClass: COMPUTE,
  CrossNamespacePodAffinity: COMPUTE,
  VolumeAttributesClass: ["persistentvolumeclaims", "requests.storage"],
};

const OPPOSITES = [
  ["BestEffort", "NotBestEffort"],
  ["Terminating", "NotTerminating"],
] as const;

/** Scopes without a list of values. */
const WITHOUT_VALUES = ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"];

function validateScopes(spec: ResourceQuotaSpec, path: string): readonly FieldError[] {
  const names: readonly string[] = spec.scopes ?? [];
  const misplaced = new MisplacedResources(spec);
  return [
    ...validateEach(names, (scope) => [
      ...(Object.hasOwn(scopes, scope) ? [] : [invalidField(path, names, "unsupported scope")]),
      ...misplaced.get(scope).map(() => invalidField(path, names, MISPLACED)),
    ]),
    ...validateOpposites(names, path, names),
  ];
}

const MISPLACED = "unsupported scope applied to resource";

/** A quota must not limit a standard resource that its scope does not apply to. */
class MisplacedResources {
  readonly #names: readonly string[];
  readonly #byScope = new Map<string, readonly string[]>();

  constructor({ hard = {} }: ResourceQuotaSpec) {
    this.#names = Object.keys(hard).filter(isForQuotas);
  }

  /** The first resources that the scope does not apply to. */
  get(scope: string): readonly string[] {
    let found = this.#byScope.get(scope);
    if (found === undefined) {
      const reach = Object.hasOwn(scopes, scope) ? scopes[scope] : undefined;
      found = reach === undefined ? [] : this.#names.filter((name) => !reach.includes(name)).slice(0, errorsMax);
      this.#byScope.set(scope, found);
    }
    return found;
  }
}

function validateOpposites(names: readonly string[], path: string, value: BadValue): readonly FieldError[] {
  return OPPOSITES.filter((pair) => pair.every((scope) => names.includes(scope))).map(() =>
    invalidField(path, value, "conflicting scopes"),
  );
}

function validateSelector(spec: ResourceQuotaSpec, path: string): readonly FieldError[] {
  const { scopeSelector } = spec;
  const requirements = scopeSelector?.matchExpressions ?? [];
  const names = requirements.map(({ scopeName }): string => scopeName);
  const misplaced = new MisplacedResources(spec);
  return [
    ...validateEach(requirements, (requirement) => {
      const scope: string = requirement.scopeName;
      return [
        ...(Object.hasOwn(scopes, scope) ? [] : [invalidField(child(path, "scopeName"), scope, "unsupported scope")]),
        ...misplaced.get(scope).map(() => invalidField(path, goStruct(scopeSelectorSchema, scopeSelector), MISPLACED)),
        ...validateOperator(requirement, path),
      ];
    }),
    // As in Kubernetes, with the value of another field.
    ...validateOpposites(names, path, spec.scopes ?? []),
  ];
}

function validateOperator(requirement: ScopedResourceSelectorRequirement, path: string): readonly FieldError[] {
  const { scopeName, operator, values = [] } = requirement;
  const [operatorAt, valuesAt] = [child(path, "operator"), child(path, "values")];
  const errors: FieldError[] = [];
  if (WITHOUT_VALUES.includes(scopeName) && operator !== "Exists") {
    const detail =
      "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
    errors.push(invalidField(operatorAt, operator, detail));
  }
  switch (operator) {
    case "In":
    case "NotIn":
      if (values.length > 0) return errors;
      return [
        ...errors,
        requiredField(valuesAt, "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"),
      ];
    case "Exists":
    case "DoesNotExist":
      if (values.length === 0) return errors;
      return [
        ...errors,
        invalidField(
          valuesAt,
          values,
          "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
        ),
      ];
    default:
      return [...errors, invalidField(operatorAt, operator, "not a valid selector operator")];
  }
}
