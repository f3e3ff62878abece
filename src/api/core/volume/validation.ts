/** Rules for the volumes of a pod: unique names, and exactly one valid source each. */
import {
  duplicateField,
  errorsMax,
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { parseQuantity } from "../../meta/quantity.ts";
import { dns1123Label, dns1123Subdomain, validateName } from "../../meta/validation/names.ts";
import { validateAnnotations, validateLabels } from "../../meta/validation/object-meta.ts";
import { PULL_POLICIES, validateChoice } from "../container/validation.ts";
import { validatePersistentVolumeClaimSpec } from "../persistent-volume-claim/validation.ts";
import {
  validateDescendingPath,
  validateDownwardFile,
  validateFiles,
  validateMode,
  validateProjected,
} from "./file-validation.ts";
import type { EphemeralVolumeSource, Volume, VolumeSource } from "./schema.ts";
import {
  requireFields,
  validateAzureDisk,
  validateDriverName,
  validateFc,
  validateFlex,
  validateFlocker,
  validateHostPath,
  validateIscsi,
  validateIscsiLength,
  validateNfs,
  validatePartition,
  validateQuobyte,
  validateSingleSource,
  validateStorageOS,
} from "./source-validation.ts";

export interface CheckedVolumes {
  readonly errors: readonly FieldError[];
  /** The valid volumes, which mounts and devices may refer to. */
  readonly volumes: ReadonlyMap<string, Volume>;
}

/** `pod` is the pod's name; empty in templates. */
export function validateVolumes(volumes: readonly Volume[], path: string, pod: string): CheckedVolumes {
  const good = new Map<string, Volume>();
  const errors: FieldError[] = [];
  const made = new Set(
    volumes.filter(({ ephemeral }) => pod !== "" && ephemeral !== undefined).map(({ name }) => `${pod}-${name}`),
  );
  for (const [i, volume] of volumes.entries()) {
    if (errors.length >= errorsMax) break;
    const at = index(path, i);
    const found = [...validateSource(volume, at, pod), ...validateVolumeName(volume.name, child(at, "name"), good)];
    if (found.length === 0) good.set(volume.name, volume);
    errors.push(...found);
    const claim = volume.persistentVolumeClaim?.claimName ?? "";
    if (made.has(claim)) {
      const detail = "must not reference a PVC that gets created for an ephemeral volume";
      errors.push(invalidField(child(at, "persistentVolumeClaim.claimName"), claim, detail));
    }
  }
  return { errors, volumes: good };
}

function validateVolumeName(name: string, path: string, used: ReadonlyMap<string, Volume>): readonly FieldError[] {
  return [
    ...(name === "" ? [requiredField(path)] : validateName(path, name, dns1123Label)),
    ...(used.has(name) ? [duplicateField(path, name)] : []),
  ];
}

type Check<S> = (source: S, path: string, volume: Volume, pod: string) => readonly FieldError[];
type Sources = { readonly [S in keyof VolumeSource]-?: Check<NonNullable<VolumeSource[S]>> };

/** Kubernetes' errors use another name for this source. */
const errorNames: Readonly<Record<string, string>> = { gcePersistentDisk: "persistentDisk" };
/** Those of a second source of a volume use other names for these. */
const secondErrorNames: Readonly<Record<string, string>> = { cephfs: "cephFS", downwardAPI: "downwarAPI" };

/** The rules by source, in Kubernetes' order. Each gets the path of the source. */
const sources: Sources = {
  emptyDir: ({ sizeLimit }, path) => {
    const negative = sizeLimit !== undefined && (parseQuantity(sizeLimit)?.nanos ?? 0n) < 0n;
    const detail = "SizeLimit field must be a valid resource quantity";
    return negative ? [forbiddenField(child(path, "sizeLimit"), detail)] : [];
  },
  hostPath: validateHostPath,
  gitRepo: (source, path) => [
    ...requireFields(source, path, "repository"),
    ...validateDescendingPath(source.directory ?? "", child(path, "directory")),
  ],
  gcePersistentDisk: (source, path) => [
    ...requireFields(source, path, "pdName"),
    ...validatePartition(source.partition, child(path, "partition")),
  ],
  awsElasticBlockStore: (source, path) => [
    ...requireFields(source, path, "volumeID"),
    ...validatePartition(source.partition, child(path, "partition")),
  ],
  secret: (source, path) => [
    ...requireName(source.secretName, child(path, "secretName")),
    ...validateFiles(source, path),
  ],
  nfs: validateNfs,
  iscsi: (source, path) => validateIscsi(source, path),
  glusterfs: (source, path) => requireFields(source, path, "endpoints", "path"),
  flocker: validateFlocker,
  persistentVolumeClaim: (source, path) => requireFields(source, path, "claimName"),
  rbd: (source, path) => requireFields(source, path, "monitors", "image"),
  cinder: (source, path) => [...requireFields(source, path, "volumeID"), ...validateSecretRef(source, path)],
  cephfs: (source, path) => requireFields(source, path, "monitors"),
  quobyte: validateQuobyte,
  downwardAPI: ({ defaultMode, items = [] }, path) => [
    ...validateMode(defaultMode, child(path, "defaultMode")),
    ...validateEach(items, (item) => validateDownwardFile(item, path)),
  ],
  fc: validateFc,
  flexVolume: validateFlex,
  configMap: (source, path) => [...requireName(source.name, child(path, "name")), ...validateFiles(source, path)],
  azureFile: (source, path) => requireFields(source, path, "secretName", "shareName"),
  vsphereVolume: (source, path) => requireFields(source, path, "volumePath"),
  photonPersistentDisk: (source, path) => requireFields(source, path, "pdID"),
  portworxVolume: (source, path) => requireFields(source, path, "volumeID"),
  azureDisk: validateAzureDisk,
  storageos: (source, path) => [...validateStorageOS(source, path), ...validateSecretRef(source, path)],
  projected: validateProjected,
  scaleIO: (source, path) => requireFields(source, path, "gateway", "system", "volumeName"),
  csi: ({ driver, nodePublishSecretRef }, path) => {
    const secret = nodePublishSecretRef?.name ?? "";
    const missing = nodePublishSecretRef !== undefined && secret === "";
    return [
      ...validateDriverName(driver, child(path, "driver")),
      ...(missing ? [requiredField(child(path, "nodePublishSecretRef.name"))] : []),
      // Kubernetes' path.
      ...(secret === "" ? [] : validateName(child(path, "name"), secret, dns1123Subdomain)),
    ];
  },
  ephemeral: validateEphemeral,
  // Workload controllers may replace the reference of a template.
  image: ({ reference, pullPolicy }, path, _, pod) => [
    ...(pod === "" ? [] : requireName(reference, child(path, "reference"))),
    ...validateChoice(pullPolicy ?? "", child(path, "pullPolicy"), PULL_POLICIES),
  ],
};

function validateSource(volume: Volume, path: string, pod: string): readonly FieldError[] {
  const present = (Object.keys(sources) as (keyof VolumeSource)[]).filter((source) => volume[source] !== undefined);
  const [first] = present;
  if (first === undefined) return validateSingleSource([], path);
  // The table pairs each source with its own check, which TypeScript cannot infer from a name.
  const check = sources[first] as Check<unknown>;
  const at = child(path, errorNames[first] ?? first);
  const names = present.map((name, i) => (i === 0 ? name : (secondErrorNames[name] ?? name)));
  const { iscsi, name } = volume;
  // Applies to a second source as well.
  const length = iscsi === undefined ? [] : validateIscsiLength(iscsi, name, child(path, "name"), name);
  return [...check(volume[first], at, volume, pod), ...validateSingleSource(names, path), ...length];
}

function requireName(name: string | undefined, path: string): readonly FieldError[] {
  return name ? [] : [requiredField(path)];
}

function validateSecretRef(
  { secretRef }: { readonly secretRef?: { readonly name?: string | undefined } | undefined },
  path: string,
): readonly FieldError[] {
  return secretRef === undefined ? [] : requireName(secretRef.name, child(path, "secretRef.name"));
}

/** The claim's name consists of those of pod and volume; its template may set only labels and annotations. */
function validateEphemeral(
  { volumeClaimTemplate: template }: EphemeralVolumeSource,
  path: string,
  volume: Volume,
  pod: string,
): readonly FieldError[] {
  const at = child(path, "volumeClaimTemplate");
  if (template === undefined) return [requiredField(at)];
  const { annotations, labels, ...others } = template.metadata ?? {};
  const metadata = child(at, "metadata");
  const claim = `${pod}-${volume.name}`;
  return [
    ...validateAnnotations(annotations, child(metadata, "annotations")),
    ...validateLabels(labels, child(metadata, "labels")),
    ...Object.entries(others)
      .filter(([, value]) => value !== undefined && value !== null && value !== "")
      .map(([name]) => forbiddenField(child(metadata, name), "cannot be set")),
    ...validatePersistentVolumeClaimSpec(template.spec, child(at, "spec")),
    ...(pod === "" ? [] : dns1123Subdomain(claim)).map((problem) =>
      invalidField(child(path.replace(/\.ephemeral$/, ""), "name"), volume.name, `PVC name "${claim}": ${problem}`),
    ),
  ];
}
