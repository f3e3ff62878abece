/** Rules for a namespace's Pod Security labels. */
import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { key } from "../../../schema/value/field-path.ts";

type Labels = Readonly<Record<string, string>> | undefined;

const MODES = ["enforce", "audit", "warn"] as const;
const LEVELS = ["privileged", "baseline", "restricted"];
const VERSION = /^(?:latest|v1\.(?:0|[1-9]\d*))$/;

/** An update may keep the errors of the stored labels. */
export function validatePodSecurityLabels(labels: Labels, previous: Labels): readonly FieldError[] {
  const errors = validateLevelLabels(labels);
  const old = validateLevelLabels(previous);
  return old.length > 0 && deepEqual(errors, old) ? [] : errors;
}

function validateLevelLabels(labels: Labels = {}): readonly FieldError[] {
  return MODES.flatMap((mode) => {
    const [level, version] = [`pod-security.kubernetes.io/${mode}`, `pod-security.kubernetes.io/${mode}-version`];
    return [
      ...validateLabel(labels, level, (value) => LEVELS.includes(value), `must be one of ${LEVELS.join(", ")}`),
      ...validateLabel(labels, version, (value) => VERSION.test(value), 'must be "latest" or "v1.x"'),
    ];
  });
}

function validateLabel(
  labels: NonNullable<Labels>,
  name: string,
  isGood: (value: string) => boolean,
  detail: string,
): readonly FieldError[] {
  const value = labels[name];
  return value === undefined || isGood(value) ? [] : [invalidField(key("metadata.labels", name), value, detail)];
}
