import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
} from "../../../schema/validation/field-error.ts";
import { ageColumn, booleanColumn, column, integerColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { type PriorityClass, priorityClass } from "./schema.ts";
import { isSystemClass, SYSTEM_PREFIX, systemClassProblem } from "./system-classes.ts";

const USER_MAX = 1_000_000_000;
const POLICIES = ["PreemptLowerPriority", "Never"];

/** New classes only: of those that are stored, little can change. */
function validatePriorityClass(object: PriorityClass, previous?: PriorityClass): readonly FieldError[] {
  if (previous !== undefined) return [];
  return [...validateValue(object), ...validatePolicy(object.preemptionPolicy)];
}

function validateValue(object: PriorityClass): readonly FieldError[] {
  const name = object.metadata?.name ?? "";
  if (name.startsWith(SYSTEM_PREFIX)) {
    const problem = systemClassProblem(object);
    if (problem === undefined) return [];
    const why = `priority class names with '${SYSTEM_PREFIX}' prefix are reserved for system use only. error: ${problem}`;
    return [forbiddenField("metadata.name", why)];
  }
  if (object.value <= USER_MAX) return [];
  return [forbiddenField("value", `maximum allowed value of a user defined priority is ${USER_MAX}`)];
}

function validatePolicy(policy: string | undefined): readonly FieldError[] {
  if (policy === "") return [requiredField("preemptionPolicy")];
  if (policy === undefined || POLICIES.includes(policy)) return [];
  return [notSupported("preemptionPolicy", policy, POLICIES)];
}

function validatePriorityClassUpdate(next: PriorityClass, previous: PriorityClass): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (next.value !== previous.value) errors.push(forbiddenField("value", "may not be changed in an update."));
  if (next.preemptionPolicy !== previous.preemptionPolicy) {
    errors.push(invalidField("preemptionPolicy", next.preemptionPolicy, "field is immutable"));
  }
  return errors;
}

const priorityClassStrategy: Strategy<PriorityClass> = {
  setDefaults: (object) => ({ ...object, preemptionPolicy: object.preemptionPolicy ?? "PreemptLowerPriority" }),
  prepareForCreate: setFirstGeneration,
  prepareForUpdate: (next, previous) => updateGeneration(next, previous, false),
  validate: validatePriorityClass,
  validateUpdate: validatePriorityClassUpdate,
  validateDelete: (object) =>
    isSystemClass(object) ? "this is a system priority class and cannot be deleted" : undefined,
};

export const priorityClassKind: Kind<PriorityClass> = {
  group: "scheduling.svc.io",
  version: "v1",
  kind: "PriorityClass",
  listKind: "PriorityClassList",
  plural: "priorityclasses",
  singular: "priorityclass",
  shortNames: ["pc"],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "priorityclasses",
  schema: priorityClass,
  columns: [
    nameColumn,
    integerColumn("Value", (object) => object.value, "The priority of pods that name the class."),
    booleanColumn("Global-Default", (object) => object.globalDefault ?? false, "Whether pods without a class get it."),
    ageColumn,
    column("PreemptionPolicy", (object) => object.preemptionPolicy ?? ""),
  ],
  selectableFields: {},
  strategy: priorityClassStrategy,
};
