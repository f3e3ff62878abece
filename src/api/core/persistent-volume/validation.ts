/** Rules for persistent volumes, and for the inline volume specs of attachments. */
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
import { goPointer } from "../../../schema/validation/go-syntax.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child, key } from "../../../schema/value/field-path.ts";
import { compareQuantityTexts } from "../../meta/quantity.ts";
import { dns1123Subdomain } from "../../meta/validation/names.ts";
import { replacementLabel } from "../node/deprecated-labels.ts";
import { validateVolumeMode } from "../persistent-volume-claim/validation.ts";
import { validateNodeSelector } from "../pod-spec/scheduling-validation.ts";
import { validateBasicQuantity } from "../resources/validation.ts";
import {
  validateAttributesClassName,
  validateAttributesClassUpdate,
  validatesAttributesClass,
} from "../volume/attributes-class-validation.ts";
import { validateAccessModes } from "./access-modes.ts";
import {
  type PersistentVolume,
  type PersistentVolumeSpec,
  persistentVolumeSource,
  type VolumeNodeAffinity,
  volumeNodeAffinity,
} from "./schema.ts";
import { isMountable, sourceOf, validatePersistentVolumeSource } from "./source-validation.ts";

export const MOUNT_OPTIONS_ANNOTATION = "volume.beta.kubernetes.io/mount-options";

export function validatePersistentVolume(
  volume: PersistentVolume,
  previous?: PersistentVolume,
  features: FeatureLookup = defaultFeatures,
): readonly FieldError[] {
  const spec = volume.spec ?? {};
  const options = volume.metadata?.annotations?.[MOUNT_OPTIONS_ANNOTATION];
  const at = child("metadata.annotations", MOUNT_OPTIONS_ANNOTATION);
  return [
    ...validatePersistentVolumeSpec(spec, volume.metadata?.name ?? "", "spec"),
    ...(validatesAttributesClass(previous?.spec, features) ? validateAttributesClass(spec, "spec") : []),
    ...(options === undefined || isMountable(spec)
      ? []
      : [forbiddenField(at, "may not specify mount options for this volume type")]),
  ];
}

export function validatePersistentVolumeSpec(
  spec: PersistentVolumeSpec,
  name: string,
  path: string,
): readonly FieldError[] {
  const { nodeAffinity, storageClassName, volumeMode, persistentVolumeReclaimPolicy: policy } = spec;
  const className = child(path, "storageClassName");
  return [
    ...validateModes(spec, path),
    ...validateCapacity(spec, child(path, "capacity")),
    ...(nodeAffinity === undefined ? [] : validateAffinity(nodeAffinity, child(path, "nodeAffinity"))),
    ...validatePersistentVolumeSource(spec, name, path),
    ...(policy === "Recycle" && isRoot(spec.hostPath?.path)
      ? [
          forbiddenField(
            child(path, "persistentVolumeReclaimPolicy"),
            "may not be 'recycle' for a hostPath mount of '/'",
          ),
        ]
      : []),
    ...(storageClassName
      ? dns1123Subdomain(storageClassName).map((problem) => invalidField(className, storageClassName, problem))
      : []),
    ...(volumeMode === undefined ? [] : validateVolumeMode(volumeMode, child(path, "volumeMode"))),
  ];
}

/** Only CSI drivers have classes of attributes. */
function validateAttributesClass({ volumeAttributesClassName: name, csi }: PersistentVolumeSpec, path: string) {
  if (name === undefined) return [];
  const at = child(path, "volumeAttributesClassName");
  const needsCsi = "has to be specified when using volumeAttributesClassName";
  return [
    ...(name === "" ? [requiredField(at, "an empty string is disallowed")] : validateAttributesClassName(name, at)),
    ...(csi === undefined ? [requiredField(child(path, "csi"), needsCsi)] : []),
  ];
}

function validateModes({ accessModes = [] }: PersistentVolumeSpec, path: string): readonly FieldError[] {
  const at = child(path, "accessModes");
  return [...(accessModes.length === 0 ? [requiredField(at)] : []), ...validateAccessModes(accessModes, at)];
}

function validateCapacity(spec: PersistentVolumeSpec, path: string): readonly FieldError[] {
  const amounts = Object.entries(spec.capacity ?? {});
  const onlyStorage = amounts.length === 1 && amounts[0]?.[0] === "storage";
  return [
    ...(amounts.length === 0 ? [requiredField(path)] : []),
    ...(onlyStorage ? [] : [notSupported(path, spec.capacity ?? {}, ["storage"])]),
    ...validateEach(amounts, ([name, amount]) => {
      const at = key(path, name);
      return [
        ...validateBasicQuantity(amount, at),
        ...(compareQuantityTexts(amount, "0") <= 0 ? [invalidField(at, amount, "must be greater than zero")] : []),
      ];
    }),
  ];
}

function validateAffinity({ required }: VolumeNodeAffinity, path: string): readonly FieldError[] {
  const at = child(path, "required");
  return required === undefined
    ? [requiredField(at, "must specify required node constraints")]
    : validateNodeSelector(required, at);
}

function isRoot(path: string | undefined): boolean {
  return path !== undefined && /^\/(?:\.?\/)*\.?$/.test(path);
}

/**
 * An inline volume spec of an attachment is a pod's in-tree volume migrated to CSI: it has no claim, capacity or class.
 */
export function validateInlineVolumeSpec(spec: PersistentVolumeSpec, path: string): readonly FieldError[] {
  const inline = "in the context of inline volumes";
  const reject = (name: string, isWrong: boolean, detail = "may not be specified"): readonly FieldError[] =>
    isWrong ? [forbiddenField(child(path, name), `${detail} ${inline}`)] : [];
  const policy = spec.persistentVolumeReclaimPolicy;
  return [
    ...reject("claimRef", spec.claimRef !== undefined),
    ...reject("capacity", Object.keys(spec.capacity ?? {}).length > 0),
    ...(spec.csi === undefined ? [requiredField(child(path, "csi"), `has to be specified ${inline}`)] : []),
    ...validateModes(spec, path),
    ...reject("persistentVolumeReclaimPolicy", !!policy && policy !== "Retain", "may only be Retain"),
    ...reject("nodeAffinity", spec.nodeAffinity !== undefined),
    ...validatePersistentVolumeSource(spec, "", path),
    ...reject("storageClassName", !!spec.storageClassName),
    ...reject(
      "volumeMode",
      spec.volumeMode !== undefined && spec.volumeMode !== "Filesystem",
      "may not specify volumeMode other than Filesystem",
    ),
  ];
}

export function validatePersistentVolumeUpdate(
  next: PersistentVolume,
  previous: PersistentVolume,
  features: FeatureLookup = defaultFeatures,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  const [spec, before] = [next.spec ?? {}, previous.spec ?? {}];
  const [source, stored] = [sourceOf(ignoreAddedSecret(spec, before)), sourceOf(before)];
  if (!deepEqual(source, stored)) {
    const difference = formatGoDiff(persistentVolumeSource, "core.PersistentVolumeSource", stored, source);
    const detail = `spec.persistentvolumesource is immutable after creation\n${difference}`;
    errors.push(forbiddenField("spec.persistentvolumesource", detail));
  }
  if (spec.volumeMode !== before.volumeMode) {
    errors.push(invalidField("volumeMode", spec.volumeMode, "field is immutable"));
  }
  if (before.nodeAffinity !== undefined && !deepEqual(spec.nodeAffinity, replaceDeprecatedLabels(before, spec))) {
    const detail = "field is immutable, except for updating from beta label to GA";
    errors.push(invalidField("nodeAffinity", goPointer(volumeNodeAffinity, spec.nodeAffinity), detail));
  }
  return [...errors, ...validateAttributesClassUpdate(spec, before, features, false)];
}

/** The secret for volume expansion may be added, but not changed. */
function ignoreAddedSecret(spec: PersistentVolumeSpec, before: PersistentVolumeSpec): PersistentVolumeSpec {
  if (spec.csi === undefined || before.csi === undefined) return spec;
  if (before.csi.controllerExpandSecretRef !== undefined) return spec;
  const { controllerExpandSecretRef: _, ...csi } = spec.csi;
  return { ...spec, csi };
}

/** The previous affinity with each deprecated label replaced, where the new affinity has the replacement. */
function replaceDeprecatedLabels(
  before: PersistentVolumeSpec,
  next: PersistentVolumeSpec,
): VolumeNodeAffinity | undefined {
  const [was, is] = [before.nodeAffinity?.required, next.nodeAffinity?.required];
  if (was === undefined || is === undefined) return before.nodeAffinity;
  const nodeSelectorTerms = was.nodeSelectorTerms.map((term, i) => {
    if (term.matchExpressions === undefined) return term;
    const matchExpressions = term.matchExpressions.map((expression, j) => {
      const label = is.nodeSelectorTerms[i]?.matchExpressions?.[j]?.key;
      // The key of a label that is not deprecated may become empty here; other rules reject that.
      return label === (replacementLabel(expression.key) ?? "") ? { ...expression, key: label } : expression;
    });
    return { ...term, matchExpressions };
  });
  return { ...before.nodeAffinity, required: { ...was, nodeSelectorTerms } };
}
