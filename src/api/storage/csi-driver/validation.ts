import {
  duplicateField,
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import type { CSIDriver, CSIDriverSpec, TokenRequest } from "./schema.ts";

const LIFECYCLE_MODES = ["Persistent", "Ephemeral"];

const GROUP_POLICIES = ["File", "None", "ReadWriteOnceWithFSType"];

const UPDATE_PERIOD_SECONDS_MIN = 10;

const TOKEN_SECONDS_MIN = 600;

const TOKEN_SECONDS_MAX = 2 ** 32;

export function validateCSIDriverSpec(spec: CSIDriverSpec): readonly FieldError[] {
  const { fsGroupPolicy, volumeLifecycleModes: modes = [] } = spec;
  const required = [
    ["attachedRequired", spec.attachRequired],
    ["podInfoOnMount", spec.podInfoOnMount],
    ["storageCapacity", spec.storageCapacity],
  ] as const;
  return [
    ...required.filter(([, value]) => value === undefined).map(([name]) => requiredField(child("spec", name))),
    ...(fsGroupPolicy === undefined || GROUP_POLICIES.includes(fsGroupPolicy)
      ? []
      : [notSupported("spec.fsGroupPolicy", fsGroupPolicy, GROUP_POLICIES)]),
    ...validateTokens(spec.tokenRequests ?? [], "spec.tokenRequests"),
    ...validateEach(modes, (mode) =>
      LIFECYCLE_MODES.includes(mode) ? [] : [notSupported("spec.volumeLifecycleModes", mode, LIFECYCLE_MODES)],
    ),
    ...(spec.seLinuxMount === undefined ? [requiredField("spec.seLinuxMount")] : []),
    ...validateUpdatePeriod(spec.nodeAllocatableUpdatePeriodSeconds, "spec.nodeAllocatableUpdatePeriodSeconds"),
  ];
}

function validateUpdatePeriod(seconds: number | undefined, path: string): readonly FieldError[] {
  if (seconds === undefined || seconds >= UPDATE_PERIOD_SECONDS_MIN) return [];
  return [invalidField(path, seconds, `must be greater than or equal to ${UPDATE_PERIOD_SECONDS_MIN} seconds`)];
}

function validateTokens(requests: readonly TokenRequest[], path: string): readonly FieldError[] {
  const audiences = new Set<string>();
  return validateEach(requests, ({ audience, expirationSeconds: seconds }, i) => {
    const at = child(index(path, i), "expirationSeconds");
    if (audiences.has(audience)) return [duplicateField(child(index(path, i), "audience"), audience)];
    audiences.add(audience);
    if (seconds === undefined) return [];
    if (seconds < TOKEN_SECONDS_MIN) {
      return [invalidField(at, seconds, "may not specify a duration less than 10 minutes")];
    }
    if (seconds <= TOKEN_SECONDS_MAX) return [];
    return [invalidField(at, seconds, "may not specify a duration larger than 2^32 seconds")];
  });
}

export function validateCSIDriverUpdate({ spec }: CSIDriver, { spec: before }: CSIDriver): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (spec.attachRequired !== before.attachRequired) {
    errors.push(invalidField("spec.attachedRequired", spec.attachRequired, "field is immutable"));
  }
  if (!deepEqual(spec.volumeLifecycleModes, before.volumeLifecycleModes)) {
    errors.push(invalidField("spec.volumeLifecycleModes", spec.volumeLifecycleModes, "field is immutable"));
  }
  return errors;
}
