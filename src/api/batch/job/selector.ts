/** The labels by which a job finds its pods, made by the server unless the client says that it knows better. */
import { type FieldError, invalidField, invalidMap, requiredField } from "../../../schema/validation/field-error.ts";
import { key } from "../../../schema/value/field-path.ts";
import { isValidSelector, selectorMatches } from "../../apps/workload/validation.ts";
import type { Job } from "./schema.ts";

const CONTROLLER_UID = "batch.kubernetes.io/controller-uid";
const JOB_NAME = "batch.kubernetes.io/job-name";

/** In the order they are checked; those without a domain are older. */
function generatedLabels({ metadata }: Job): Readonly<Record<string, string>> {
  const { uid = "", name = "" } = metadata ?? {};
  return { "controller-uid": uid, "job-name": name, [CONTROLLER_UID]: uid, [JOB_NAME]: name };
}

/** What the client has set stays; validation tells where it contradicts. */
export function generateSelector(object: Job): Job {
  const { spec } = object;
  if (spec === undefined || spec.manualSelector === true) return object;
  const labels = { ...generatedLabels(object), ...spec.template.metadata?.labels };
  const matchLabels = { [CONTROLLER_UID]: object.metadata?.uid ?? "", ...spec.selector?.matchLabels };
  const template = { ...spec.template, metadata: { ...spec.template.metadata, labels } };
  return { ...object, spec: { ...spec, selector: { ...spec.selector, matchLabels }, template } };
}

export function validateGeneratedSelector(object: Job, previous: Job | undefined): readonly FieldError[] {
  const { spec } = object;
  if (spec === undefined || spec.manualSelector === true || spec.selector === undefined) return [];
  const labels = spec.template.metadata?.labels ?? {};
  const expected = generatedLabels(object);
  const names = Object.keys(expected).filter((name) => !name.includes("/") || usesPrefixedLabels(previous));
  const generated = Object.fromEntries(names.map((name) => [name, expected[name] ?? ""]));
  return [
    ...names.flatMap((name) => validateLabel(labels, name, expected[name] ?? "")),
    ...(isValidSelector(spec.selector) && !selectorMatches(spec.selector, generated)
      ? [invalidField("spec.selector", spec.selector, "`selector` not auto-generated")]
      : []),
  ];
}

/** Jobs from before the labels had a domain stay without. */
function usesPrefixedLabels(previous: Job | undefined): boolean {
  const labels = previous?.spec?.template.metadata?.labels;
  return previous === undefined || (labels?.[JOB_NAME] !== undefined && labels[CONTROLLER_UID] !== undefined);
}

function validateLabel(labels: Readonly<Record<string, string>>, name: string, wanted: string): readonly FieldError[] {
  const field = key("spec.template.metadata.labels", name);
  const detail = `must be '${wanted}'`;
  if (labels[name] === undefined) return [requiredField(field, detail)];
  return labels[name] === wanted ? [] : [invalidMap(field, labels, detail)];
}
