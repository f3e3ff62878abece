/** Rules for jobs and for the job templates of cron jobs. */
import {
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  tooLong,
} from "../../../schema/validation/field-error.ts";
import { child } from "../../../schema/value/field-path.ts";
import {
  isValidSelector,
  validateStoredSelector,
  validateTemplate,
  validateTemplateLabels,
} from "../../apps/workload/validation.ts";
import { validateNonNegativeFields } from "../../meta/validation/bounds.ts";
import { validateDomainPrefixedPath } from "../../meta/validation/domain-prefixed-path.ts";
import { dns1123Label } from "../../meta/validation/names.ts";
import { validatePodFailurePolicy, validatePodReplacementPolicy, validateSuccessPolicy } from "./policy-validation.ts";
import type { Job, JobSpec } from "./schema.ts";
import { validateGeneratedSelector } from "./selector.ts";

/** The maximum number of completions of an indexed job with a limit on failed indexes. */
const INDEXED_MAX = 100_000;
/** The maximum of maxFailedIndexes and parallelism for an indexed job with more completions than INDEXED_MAX allows. */
const MANY_COMPLETIONS_MAX = 10_000;
const MANAGED_BY_MAX_BYTES = 63;

export function validateJob(object: Job, previous: Job | undefined): readonly FieldError[] {
  const { spec } = object;
  if (spec === undefined) return [];
  return [
    ...validateGeneratedSelector(object, previous),
    ...validateSpecAndSelector(spec, previous?.spec),
    ...validateHostNames(object),
  ];
}

export function validateSpecAndSelector(spec: JobSpec, previous: JobSpec | undefined): readonly FieldError[] {
  const { selector, template } = spec;
  return [
    ...validateJobSpec(spec, "spec", previous),
    ...(selector === undefined
      ? [requiredField("spec.selector")]
      : validateStoredSelector(selector, previous?.selector, "spec.selector")),
    ...(isValidSelector(selector) ? validateTemplateLabels(selector, template, "spec.template") : []),
  ];
}

/** The index becomes part of the host names of pods. */
function validateHostNames({ metadata, spec }: Job): readonly FieldError[] {
  if (spec?.completionMode !== "Indexed" || (spec.completions ?? 0) <= 0) return [];
  const name = metadata?.name ?? "";
  const longest = `${name}-${(spec.completions ?? 0) - 1}`;
  if (dns1123Label(longest).length === 0) return [];
  return [invalidField("metadata.name", name, `will not able to create pod with invalid DNS label: ${longest}`)];
}

export function validateJobSpec(spec: JobSpec, path: string, previous: JobSpec | undefined): readonly FieldError[] {
  const at = (name: string): string => child(path, name);
  return [
    ...validateNonNegativeFields(spec, path, [
      "parallelism",
      "completions",
      "activeDeadlineSeconds",
      "backoffLimit",
      "ttlSecondsAfterFinished",
      "backoffLimitPerIndex",
      "maxFailedIndexes",
    ]),
    ...(spec.maxFailedIndexes !== undefined && spec.backoffLimitPerIndex === undefined
      ? [requiredField(at("backoffLimitPerIndex"), "when maxFailedIndexes is specified")]
      : []),
    ...validateManager(spec.managedBy, at("managedBy")),
    ...validateCompletionMode(spec, path),
    ...(spec.podFailurePolicy === undefined ? [] : validatePodFailurePolicy(spec, at("podFailurePolicy"))),
    ...validateSuccessPolicy(spec, at("successPolicy")),
    ...validatePodReplacementPolicy(spec, at("podReplacementPolicy")),
    ...validateTemplate(spec.template, previous?.template, at("template")),
    ...validateRestartPolicy(spec, child(at("template"), "spec.restartPolicy")),
  ];
}

function validateManager(manager: string | undefined, field: string): readonly FieldError[] {
  if (manager === undefined) return [];
  const long = Buffer.byteLength(manager) > MANAGED_BY_MAX_BYTES;
  return [...validateDomainPrefixedPath(manager, field), ...(long ? [tooLong(field, MANAGED_BY_MAX_BYTES)] : [])];
}

function validateCompletionMode(spec: JobSpec, path: string): readonly FieldError[] {
  const mode = spec.completionMode;
  if (mode === "Indexed") return validateIndexed(spec, path);
  if (mode !== undefined && mode !== "NonIndexed") {
    return [notSupported(child(path, "completionMode"), mode, ["NonIndexed", "Indexed"])];
  }
  return (["backoffLimitPerIndex", "maxFailedIndexes"] as const)
    .filter((name) => spec[name] !== undefined)
    .map((name) => invalidField(child(path, name), spec[name], "requires indexed completion mode"));
}

function validateIndexed(spec: JobSpec, path: string): readonly FieldError[] {
  const { completions, maxFailedIndexes } = spec;
  const at = (name: string): string => child(path, name);
  const errors: FieldError[] = [];
  const atMost = (name: "parallelism" | "maxFailedIndexes", most: number, suffix: string): void => {
    const value = spec[name] ?? 0;
    if (value > most) errors.push(invalidField(at(name), value, `must be less than or equal to ${most}${suffix}`));
  };
  if (completions === undefined) errors.push(requiredField(at("completions"), "when completion mode is Indexed"));
  atMost("parallelism", INDEXED_MAX, " when completion mode is Indexed");
  if (completions !== undefined && maxFailedIndexes !== undefined && maxFailedIndexes > completions) {
    errors.push(invalidField(at("maxFailedIndexes"), maxFailedIndexes, "must be less than or equal to completions"));
  }
  atMost("maxFailedIndexes", INDEXED_MAX, "");
  if ((completions ?? 0) <= INDEXED_MAX || spec.backoffLimitPerIndex === undefined) return errors;
  if (maxFailedIndexes === undefined) {
    errors.push(requiredField(at("maxFailedIndexes"), `must be specified when completions is above ${INDEXED_MAX}`));
  }
  const when = ` when completions are above ${INDEXED_MAX} and used with backoff limit per index`;
  atMost("parallelism", MANY_COMPLETIONS_MAX, when);
  atMost("maxFailedIndexes", MANY_COMPLETIONS_MAX, when);
  return errors;
}

/** The pods of a job must terminate: `Always` is not supported. */
function validateRestartPolicy(spec: JobSpec, field: string): readonly FieldError[] {
  const policy = spec.template.spec?.restartPolicy || "Always";
  if (policy === "Always") return [requiredField(field, 'valid values: "OnFailure", "Never"')];
  if (policy !== "OnFailure" && policy !== "Never") return [notSupported(field, policy, ["OnFailure", "Never"])];
  if (spec.podFailurePolicy === undefined || policy === "Never") return [];
  return [invalidField(field, policy, 'only "Never" is supported when podFailurePolicy is specified')];
}
