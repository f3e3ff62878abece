import {
  duplicateField,
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
} from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { ageColumn, booleanColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { updateGeneration } from "../../strategy.ts";
import { type CSIDriver, type CSIDriverSpec, csiDriver, type TokenRequest } from "./schema.ts";

const LIFECYCLE_MODES = ["Persistent", "Ephemeral"];
const GROUP_POLICIES = ["File", "None", "ReadWriteOnceWithFSType"];
const TOKEN_SECONDS_MIN = 600;
const TOKEN_SECONDS_MAX = 2 ** 32;

function setCSIDriverDefaults(object: CSIDriver): CSIDriver {
  const { spec } = object;
  const { volumeLifecycleModes: modes = [] } = spec;
  return {
    ...object,
    spec: {
      ...spec,
      attachRequired: spec.attachRequired ?? true,
      podInfoOnMount: spec.podInfoOnMount ?? false,
      storageCapacity: spec.storageCapacity ?? false,
      fsGroupPolicy: spec.fsGroupPolicy ?? "ReadWriteOnceWithFSType",
      volumeLifecycleModes: modes.length === 0 ? ["Persistent"] : modes,
      requiresRepublish: spec.requiresRepublish ?? false,
      seLinuxMount: spec.seLinuxMount ?? false,
    },
  };
}

/** A member whose feature is off unless asked for goes, unless the driver had it. */
function dropDisabledFields(object: CSIDriver, previous?: CSIDriver): CSIDriver {
  const { nodeAllocatableUpdatePeriodSeconds: seconds, ...spec } = object.spec;
  if (seconds === undefined || previous?.spec.nodeAllocatableUpdatePeriodSeconds !== undefined) return object;
  return { ...object, spec };
}

function validateCSIDriverSpec(spec: CSIDriverSpec): readonly FieldError[] {
  const { fsGroupPolicy, volumeLifecycleModes: modes = [] } = spec;
  const demanded = [
    ["attachedRequired", spec.attachRequired],
    ["podInfoOnMount", spec.podInfoOnMount],
    ["storageCapacity", spec.storageCapacity],
    ["seLinuxMount", spec.seLinuxMount],
  ] as const;
  return [
    ...demanded.filter(([, value]) => value === undefined).map(([name]) => requiredField(child("spec", name))),
    ...(fsGroupPolicy === undefined || GROUP_POLICIES.includes(fsGroupPolicy)
      ? []
      : [notSupported("spec.fsGroupPolicy", fsGroupPolicy, GROUP_POLICIES)]),
    ...validateTokens(spec.tokenRequests ?? [], "spec.tokenRequests"),
    ...modes
      .filter((mode) => !LIFECYCLE_MODES.includes(mode))
      .map((mode) => notSupported("spec.volumeLifecycleModes", mode, LIFECYCLE_MODES)),
  ];
}

function validateTokens(requests: readonly TokenRequest[], path: string): readonly FieldError[] {
  const audiences = new Set<string>();
  return requests.flatMap(({ audience, expirationSeconds: seconds }, i) => {
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

function validateCSIDriverUpdate({ spec }: CSIDriver, { spec: before }: CSIDriver): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (spec.attachRequired !== before.attachRequired) {
    errors.push(invalidField("spec.attachedRequired", spec.attachRequired, "field is immutable"));
  }
  if (!deepEqual(spec.volumeLifecycleModes, before.volumeLifecycleModes)) {
    errors.push(invalidField("spec.volumeLifecycleModes", spec.volumeLifecycleModes, "field is immutable"));
  }
  return errors;
}

const csiDriverStrategy: Strategy<CSIDriver> = {
  allowUnconditionalUpdate: false,
  setDefaults: setCSIDriverDefaults,
  prepareForCreate: (object) => dropDisabledFields(object),
  prepareForUpdate: (next, previous) => {
    const kept = dropDisabledFields(next, previous);
    return updateGeneration(kept, previous, !deepEqual(kept.spec, previous.spec));
  },
  validate: ({ spec }) => validateCSIDriverSpec(spec),
  validateUpdate: validateCSIDriverUpdate,
};

export const csiDriverKind: Kind<CSIDriver> = {
  group: "storage.svc.io",
  version: "v1",
  kind: "CSIDriver",
  listKind: "CSIDriverList",
  plural: "csidrivers",
  singular: "csidriver",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "csidrivers",
  schema: csiDriver,
  columns: [
    nameColumn,
    booleanColumn("AttachRequired", ({ spec }) => spec.attachRequired ?? true),
    booleanColumn("PodInfoOnMount", ({ spec }) => spec.podInfoOnMount ?? false),
    booleanColumn("StorageCapacity", ({ spec }) => spec.storageCapacity ?? false),
    column(
      "TokenRequests",
      ({ spec }) => (spec.tokenRequests ?? []).map(({ audience }) => audience).join(",") || "<unset>",
    ),
    booleanColumn("RequiresRepublish", ({ spec }) => spec.requiresRepublish ?? false),
    column("Modes", ({ spec }) => (spec.volumeLifecycleModes ?? []).join(",") || "<none>"),
    ageColumn,
  ],
  selectableFields: {},
  strategy: csiDriverStrategy,
};
