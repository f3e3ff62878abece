/** Rules for updates of a job's spec. */
import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { type PodTemplateSpec, podTemplateSpec } from "../../core/pod-template/schema.ts";
import { validateImmutableField, validateImmutableSelector } from "../../meta/validation/immutable.ts";
import type { Job, JobSpec } from "./schema.ts";
import { validateSpecAndSelector } from "./validation.ts";

const IMMUTABLE = [
  "completionMode",
  "podFailurePolicy",
  "backoffLimitPerIndex",
  "managedBy",
  "successPolicy",
] as const satisfies readonly (keyof JobSpec)[];

export function validateJobUpdate(next: Job, previous: Job): readonly FieldError[] {
  const [spec, old] = [next.spec, previous.spec];
  if (spec === undefined || old === undefined) return [];
  // The scheduling directives of a suspended job may change until it has pods.
  const movable = old.suspend === true && previous.status?.startTime === undefined;
  const template = movable ? copySchedulingDirectives(old.template, spec.template) : old.template;
  return [
    // An update reports these a second time.
    ...validateSpecAndSelector(spec, old),
    ...validateCompletions(spec, old),
    ...validateImmutableSelector(spec.selector, old.selector),
    ...validateImmutableField(spec.template, template, "spec.template", podTemplateSpec),
    ...IMMUTABLE.flatMap((name) => validateImmutableField(spec[name], old[name], `spec.${name}`)),
  ];
}

/** The completions of an indexed job may change together with its parallelism. */
function validateCompletions(spec: JobSpec, old: JobSpec): readonly FieldError[] {
  const field = "spec.completions";
  if (spec.completionMode !== "Indexed") return validateImmutableField(spec.completions, old.completions, field);
  if (deepEqual(spec.completions, old.completions) || spec.completions === undefined) return [];
  if (spec.completions === spec.parallelism) return [];
  return [invalidField(field, spec.completions, "can only be modified in tandem with spec.parallelism")];
}

/** The template with the mutable scheduling directives of `next`. */
function copySchedulingDirectives(template: PodTemplateSpec, next: PodTemplateSpec): PodTemplateSpec {
  const { nodeSelector, tolerations, schedulingGates } = next.spec ?? {};
  const { annotations, labels } = next.metadata ?? {};
  const affinity = copyNodeAffinity(template, next);
  return {
    ...template,
    metadata: undefinedIfEmpty({ ...template.metadata, annotations, labels }),
    spec: { containers: [], ...template.spec, nodeSelector, tolerations, schedulingGates, affinity },
  };
}

function copyNodeAffinity(template: PodTemplateSpec, next: PodTemplateSpec) {
  const { nodeAffinity: _, ...others } = template.spec?.affinity ?? {};
  const nodeAffinity = next.spec?.affinity?.nodeAffinity;
  const affinity = { ...others, nodeAffinity };
  return next.spec?.affinity === undefined ? undefinedIfEmpty(affinity) : affinity;
}

/** An empty object compares as absent. */
function undefinedIfEmpty<T extends object>(object: T): T | undefined {
  return Object.values(object).every((member) => member === undefined) ? undefined : object;
}
