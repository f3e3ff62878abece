/** Rules for persistent volume claims, and for the claim templates of pods and StatefulSets. */
import { defaultFeatures } from "../../../flags/gate-tables/default-features.ts";
import type { FeatureLookup } from "../../../flags/gates.ts";
import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { formatGoDiff } from "../../../schema/validation/go-diff.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child, key } from "../../../schema/value/field-path.ts";
import { compareQuantityTexts, quantityNanos } from "../../meta/quantity.ts";
import { type LabelSelectorValidationOptions, validateLabelSelector } from "../../meta/validation/label-selector.ts";
import { dns1123Label, dns1123Subdomain, qualifiedName } from "../../meta/validation/names.ts";
import { validateAccessModes } from "../persistent-volume/access-modes.ts";
import { STORAGE_CLASS_ANNOTATION } from "../persistent-volume/storage-class-name.ts";
import {
  type TypedLocalObjectReference,
  type TypedObjectReference,
  typedLocalObjectReference,
} from "../references/object-reference.ts";
import type { ResourceList } from "../resources/schema.ts";
import { validateBasicQuantity } from "../resources/validation.ts";
import {
  validateAttributesClassName,
  validateAttributesClassUpdate,
  validatesAttributesClass,
} from "../volume/attributes-class-validation.ts";
import { type PersistentVolumeClaimSpec, persistentVolumeClaimSpec } from "../volume/schema.ts";
import type { PersistentVolumeClaim, PersistentVolumeClaimStatus } from "./schema.ts";

export interface PersistentVolumeClaimValidationOptions {
  /** Exempts values that the stored claim has already. */
  readonly selector?: LabelSelectorValidationOptions;
  readonly allowBadGroups?: boolean;
}

/** Exemptions for updates: values that are invalid today but that the stored claim has already. */
export function validationOptionsFrom(
  previous: PersistentVolumeClaimSpec | undefined,
): PersistentVolumeClaimValidationOptions {
  const badValues = validateLabelSelector(previous?.selector, "").length > 0;
  const groups = [previous?.dataSource?.apiGroup, previous?.dataSourceRef?.apiGroup];
  const allowBadGroups = groups.some((group) => group !== undefined);
  return { selector: { allowInvalidValues: badValues }, allowBadGroups };
}

export function validatePersistentVolumeClaim(
  claim: PersistentVolumeClaim,
  previous?: PersistentVolumeClaim,
  features: FeatureLookup = defaultFeatures,
): readonly FieldError[] {
  const { spec = {} } = claim;
  return [
    ...validatePersistentVolumeClaimSpec(spec, "spec", validationOptionsFrom(previous?.spec)),
    ...(validatesAttributesClass(previous?.spec, features)
      ? validateAttributesClassName(spec.volumeAttributesClassName, "spec.volumeAttributesClassName")
      : []),
  ];
}

export function validatePersistentVolumeClaimSpec(
  spec: PersistentVolumeClaimSpec,
  path: string,
  rules: PersistentVolumeClaimValidationOptions = {},
): readonly FieldError[] {
  const { accessModes = [], volumeMode } = spec;
  const modes = child(path, "accessModes");
  return [
    ...(accessModes.length === 0 ? [requiredField(modes, "at least 1 access mode is required")] : []),
    ...validateLabelSelector(spec.selector, child(path, "selector"), rules.selector),
    ...validateAccessModes(accessModes, modes),
    ...validateSize(spec.resources?.requests?.storage, key(child(path, "resources"), "storage")),
    ...validateClass(spec.storageClassName, child(path, "storageClassName")),
    ...(volumeMode === undefined ? [] : validateVolumeMode(volumeMode, child(path, "volumeMode"))),
    ...validateDataSources(spec, path, rules),
  ];
}

function validateSize(storage: string | undefined, path: string): readonly FieldError[] {
  if (storage === undefined) return [requiredField(path)];
  return compareQuantityTexts(storage, "0") > 0 ? [] : [invalidField(path, storage, "must be greater than zero")];
}

function validateClass(name: string | undefined, path: string): readonly FieldError[] {
  return name ? dns1123Subdomain(name).map((problem) => invalidField(path, name, problem)) : [];
}

export function validateVolumeMode(mode: string, path: string): readonly FieldError[] {
  return mode === "Block" || mode === "Filesystem" ? [] : [notSupported(path, mode, ["Block", "Filesystem"])];
}

function validateDataSources(
  { dataSource, dataSourceRef }: PersistentVolumeClaimSpec,
  path: string,
  rules: PersistentVolumeClaimValidationOptions,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (dataSource !== undefined) errors.push(...validateDataSource(dataSource, child(path, "dataSource"), rules));
  if (dataSourceRef !== undefined) {
    errors.push(...validateDataSourceRef(dataSourceRef, child(path, "dataSourceRef"), rules));
  }
  if (dataSource === undefined || dataSourceRef === undefined) return errors;
  // Kubernetes shows a pointer as the value, so that equal errors have different texts.
  const reject = (detail: string): void => {
    errors.push({ ...invalidField(path, goStruct(typedLocalObjectReference, dataSource), detail), isDistinct: true });
  };
  if (dataSourceRef.namespace) reject("may not be specified when dataSourceRef.namespace is specified");
  else if (!deepEqual({ ...dataSource }, { ...dataSourceRef, namespace: undefined }))
    reject("must match dataSourceRef");
  return errors;
}

function validateDataSource(
  { name, kind, apiGroup = "" }: TypedLocalObjectReference,
  path: string,
  rules: PersistentVolumeClaimValidationOptions,
): readonly FieldError[] {
  const group = child(path, "apiGroup");
  const errors: FieldError[] = [];
  if (name === "") errors.push(requiredField(child(path, "name")));
  if (kind === "") errors.push(requiredField(child(path, "kind")));
  if (apiGroup === "" && kind !== "PersistentVolumeClaim") {
    errors.push(invalidField(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"));
  }
  if (apiGroup !== "" && rules.allowBadGroups !== true) {
    errors.push(...dns1123Subdomain(apiGroup).map((problem) => invalidField(group, apiGroup, problem)));
  }
  return errors;
}

function validateDataSourceRef(
  reference: TypedObjectReference,
  path: string,
  rules: PersistentVolumeClaimValidationOptions,
): readonly FieldError[] {
  const { namespace } = reference;
  const namespacePath = child(path, "namespace");
  return [
    ...validateDataSource(reference, path, rules),
    ...(namespace ? dns1123Label(namespace).map((problem) => invalidField(namespacePath, namespace, problem)) : []),
  ];
}

const IMMUTABLE =
  "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

export function validatePersistentVolumeClaimUpdate(
  next: PersistentVolumeClaim,
  previous: PersistentVolumeClaim,
  features: FeatureLookup = defaultFeatures,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (!movesClassFromAnnotation(next, previous)) {
    const [is, was] = [annotatedClass(next) ?? "", annotatedClass(previous) ?? ""];
    const at = child("metadata.annotations", STORAGE_CLASS_ANNOTATION);
    if (is !== was) errors.push(invalidField(at, is, "field is immutable"));
  }
  const masked = normalizeQuantities(maskMutableFields(next, previous));
  // The name of the volume may be set once.
  const volumeName = previous.spec?.volumeName || next.spec?.volumeName;
  const stored = normalizeQuantities({ ...previous.spec, volumeName });
  if (!deepEqual(masked, stored)) {
    const difference = formatGoDiff(persistentVolumeClaimSpec, "core.PersistentVolumeClaimSpec", stored, masked);
    errors.push(forbiddenField("spec", `${IMMUTABLE}\n${difference}`));
  }
  const [size, before] = [next, previous].map((claim) => claim.spec?.resources?.requests?.storage ?? "0");
  const held = previous.status?.capacity?.storage ?? "0";
  // A failed expansion may be reverted, down to the capacity of the volume.
  const reverts = features.has("RecoverVolumeExpansionFailure") || hasAllocatedResources(previous);
  if (compareQuantityTexts(size!, before!) < 0 && (!reverts || compareQuantityTexts(size!, held) <= 0)) {
    const least = reverts ? "status.capacity" : "previous value";
    errors.push(forbiddenField("spec.resources.requests.storage", `field can not be less than ${least}`));
  }
  if (next.spec?.volumeMode !== previous.spec?.volumeMode) {
    errors.push(invalidField("volumeMode", next.spec?.volumeMode, "field is immutable"));
  }
  return [...errors, ...validateAttributesClassUpdate(next.spec ?? {}, previous.spec ?? {}, features, true)];
}

function hasAllocatedResources({ status }: PersistentVolumeClaim): boolean {
  return status?.allocatedResources !== undefined || status?.allocatedResourceStatuses !== undefined;
}

/** Returns `next` with the mutable fields of `previous`; any difference that remains is invalid. */
function maskMutableFields(next: PersistentVolumeClaim, previous: PersistentVolumeClaim): PersistentVolumeClaimSpec {
  let spec = next.spec ?? {};
  const before = previous.spec ?? {};
  const annotated = annotatedClass(previous);
  const gainsClass =
    before.storageClassName === undefined && (annotated === undefined || annotated === spec.storageClassName);
  if (movesClassFromAnnotation(next, previous) || gainsClass) {
    spec = { ...spec, storageClassName: before.storageClassName };
  }
  spec = { ...spec, volumeAttributesClassName: before.volumeAttributesClassName };
  if (next.status?.phase !== "Bound") return spec;
  if (spec.resources?.requests !== undefined) {
    const { storage: _, ...others } = spec.resources.requests;
    const storage = before.resources?.requests?.storage;
    const requests = storage === undefined ? others : { ...others, storage };
    spec = { ...spec, resources: { ...spec.resources, requests } };
  }
  return spec;
}

function annotatedClass(claim: PersistentVolumeClaim): string | undefined {
  return claim.metadata?.annotations?.[STORAGE_CLASS_ANNOTATION];
}

/** A claim with the class in the annotation may set the same class in its spec. */
function movesClassFromAnnotation(next: PersistentVolumeClaim, previous: PersistentVolumeClaim): boolean {
  const previousClass = annotatedClass(previous);
  const nextClass = annotatedClass(next);
  if (previousClass === undefined || previous.spec?.storageClassName !== undefined) return false;
  return next.spec?.storageClassName === previousClass && (nextClass === undefined || nextClass === previousClass);
}

/** A spec in which quantities compare by value, not by text. */
function normalizeQuantities({ resources, ...spec }: PersistentVolumeClaimSpec): unknown {
  const values = (list: ResourceList = {}): unknown =>
    Object.fromEntries(Object.entries(list).map(([name, amount]) => [name, quantityNanos(amount)]));
  return { ...spec, requests: values(resources?.requests), limits: values(resources?.limits) };
}

const RESIZE_STATES = [
  "ControllerResizeInProgress",
  "ControllerResizeInfeasible",
  "NodeResizePending",
  "NodeResizeInProgress",
  "NodeResizeInfeasible",
].sort();

export function validatePersistentVolumeClaimStatusUpdate(next: PersistentVolumeClaim): readonly FieldError[] {
  const { capacity, allocatedResources, allocatedResourceStatuses }: PersistentVolumeClaimStatus = next.status ?? {};
  const states = "status.allocatedResourceStatus";
  const amounts = "status.allocatedResources";
  return [
    ...((next.spec?.accessModes ?? []).length === 0 ? [requiredField("Spec.accessModes")] : []),
    ...validateEach(Object.entries(capacity ?? {}), ([name, amount]) =>
      validateBasicQuantity(amount, key("status.capacity", name)),
    ),
    ...validateEach(Object.entries(allocatedResourceStatuses ?? {}), ([name, state]) => [
      ...validateResourceKey(name, states),
      ...(RESIZE_STATES.includes(state) ? [] : [notSupported(states, name, RESIZE_STATES)]),
    ]),
    ...validateEach(Object.entries(allocatedResources ?? {}), ([name, amount]) => {
      const wrongName = validateResourceKey(name, amounts);
      return wrongName.length > 0 ? wrongName : validateBasicQuantity(amount, key(amounts, name));
    }),
  ];
}

/** Of the names without a domain, only storage is a resource of claims. */
function validateResourceKey(name: string, path: string): readonly FieldError[] {
  const problems = qualifiedName(name).map((problem) => invalidField(path, name, problem));
  if (problems.length > 0 || name === "storage") return problems;
  const native = !name.includes("/") || name.includes("kubernetes.io/");
  return native ? [notSupported(path, name, ["storage"])] : [];
}
