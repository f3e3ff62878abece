/** Rules for the source of a persistent volume: exactly one source with its required fields. */
import { type FieldError, invalidField, requiredField, validateEach } from "../../../schema/validation/field-error.ts";
import { child } from "../../../schema/value/field-path.ts";
import { dns1123Label, dns1123Subdomain } from "../../meta/validation/names.ts";
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
  validateNoBacksteps,
  validatePartition,
  validateQuobyte,
  validateSingleSource,
  validateStorageOS,
} from "../volume/source-validation.ts";
import type {
  CSIPersistentVolumeSource,
  GlusterfsPersistentVolumeSource,
  PersistentVolumeSource,
  PersistentVolumeSpec,
} from "./schema.ts";

type Source = keyof PersistentVolumeSource;
type Sources = { readonly [S in Source]-?: NonNullable<PersistentVolumeSource[S]> };
type Check<S extends Source> = (source: Sources[S], at: string, volume: string, spec: Spec) => readonly FieldError[];
interface Spec {
  readonly path: string;
  readonly nodeAffinity?: unknown;
}

/** The rules by source, in Kubernetes' order: the first source that is set counts. */
const checks: { readonly [S in Source]-?: Check<S> } = {
  hostPath: validateHostPath,
  gcePersistentDisk: (source, at) => [
    ...requireFields(source, at, "pdName"),
    ...validatePartition(source.partition, child(at, "partition")),
  ],
  awsElasticBlockStore: (source, at) => [
    ...requireFields(source, at, "volumeID"),
    ...validatePartition(source.partition, child(at, "partition")),
  ],
  glusterfs: (source, at) => [
    ...requireFields(source, at, "endpoints", "path"),
    ...validateEndpointsNamespace(source, at),
  ],
  flocker: validateFlocker,
  nfs: validateNfs,
  rbd: (source, at) => requireFields(source, at, "monitors", "image"),
  quobyte: validateQuobyte,
  cephfs: (source, at) => requireFields(source, at, "monitors"),
  iscsi: (source, at, volume) => [
    ...validateIscsi(source, at, "must be valid format"),
    ...(source.secretRef === undefined ? [] : requireFields(source.secretRef, child(at, "secretRef"), "name")),
    ...validateIscsiLength(source, volume, child(at, "targetportal"), source.targetPortal),
  ],
  cinder: (source, at) => [
    ...requireFields(source, at, "volumeID"),
    ...(source.secretRef === undefined
      ? []
      : requireFields(source.secretRef, child(at, "secretRef"), "name", "namespace")),
  ],
  fc: validateFc,
  flexVolume: validateFlex,
  azureFile: (source, at) => [
    ...requireFields(source, at, "secretName", "shareName"),
    ...(source.secretNamespace === "" ? [requiredField(child(at, "secretNamespace"))] : []),
  ],
  vsphereVolume: (source, at) => requireFields(source, at, "volumePath"),
  photonPersistentDisk: (source, at) => requireFields(source, at, "pdID"),
  portworxVolume: (source, at) => requireFields(source, at, "volumeID"),
  azureDisk: validateAzureDisk,
  scaleIO: (source, at) => requireFields(source, at, "gateway", "system", "volumeName"),
  local: (source, at, _, { path, nodeAffinity }) => [
    ...(source.path === "" ? [requiredField(child(at, "path"))] : validateNoBacksteps(source.path, child(at, "path"))),
    ...(nodeAffinity === undefined
      ? [requiredField(child(path, "nodeAffinity"), "Local volume requires node affinity")]
      : []),
  ],
  storageos: (source, at) => [
    ...validateStorageOS(source, at),
    ...(source.secretRef === undefined
      ? []
      : requireFields(source.secretRef, child(at, "secretRef"), "name", "namespace")),
  ],
  csi: validateCsi,
};

/** Kubernetes' errors use another name for this source. */
const errorNames: Partial<Record<Source, string>> = { gcePersistentDisk: "persistentDisk" };
const surplusErrorNames: Partial<Record<Source, string>> = { cephfs: "cephFS" };
const sources = Object.keys(checks) as readonly Source[];

export function validatePersistentVolumeSource(
  spec: PersistentVolumeSpec,
  volume: string,
  path: string,
): readonly FieldError[] {
  const present = sources.filter((name) => spec[name] !== undefined);
  const check = (name: Source): readonly FieldError[] =>
    (checks[name] as Check<Source>)(spec[name] as never, child(path, errorNames[name] ?? name), volume, {
      path,
      nodeAffinity: spec.nodeAffinity,
    });
  // As in Kubernetes, flexVolume does not count as a second source.
  const checked = present.filter((name, i) => i === 0 || name === "flexVolume");
  const surplus = present.filter((name) => !checked.includes(name)).map((name) => surplusErrorNames[name] ?? name);
  return [...validateEach(checked, check), ...validateSingleSource([...checked.slice(0, 1), ...surplus], path)];
}

/** The fields of the spec that are sources. */
export function sourceOf(spec: PersistentVolumeSpec): PersistentVolumeSource {
  return Object.fromEntries(sources.flatMap((name) => (spec[name] === undefined ? [] : [[name, spec[name]]])));
}

const unmountable: ReadonlySet<Source> = new Set<Source>([
  "hostPath",
  "flocker",
  "fc",
  "flexVolume",
  "portworxVolume",
  "scaleIO",
  "local",
  "storageos",
  "csi",
]);

/** Whether the source supports mount options. */
export function isMountable(spec: PersistentVolumeSpec): boolean {
  return sources.some((name) => spec[name] !== undefined && !unmountable.has(name));
}

function validateEndpointsNamespace(source: GlusterfsPersistentVolumeSource, path: string): readonly FieldError[] {
  const { endpointsNamespace: namespace } = source;
  if (namespace === undefined) return [];
  const at = child(path, "endpointsNamespace");
  const detail = "if the endpointnamespace is set, it must be a valid namespace name";
  if (namespace === "") return [invalidField(at, namespace, detail)];
  return dns1123Label(namespace).map((problem) => invalidField(at, namespace, problem));
}

/** Like Kubernetes, does not validate nodeStageSecretRef. */
const checkedSecrets = [
  "controllerPublishSecretRef",
  "controllerExpandSecretRef",
  "nodePublishSecretRef",
  "nodeExpandSecretRef",
] as const;

function validateCsi(source: CSIPersistentVolumeSource, path: string): readonly FieldError[] {
  return [
    ...validateDriverName(source.driver, child(path, "driver")),
    ...requireFields(source, path, "volumeHandle"),
    ...validateEach(checkedSecrets, (name) => {
      const secret = source[name];
      return secret === undefined ? [] : validateSecret(secret, child(path, name));
    }),
  ];
}

interface SecretReference {
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
}

function validateSecret({ name = "", namespace = "" }: SecretReference, path: string): readonly FieldError[] {
  const [nameAt, namespaceAt] = [child(path, "name"), child(path, "namespace")];
  return [
    ...(name === ""
      ? [requiredField(nameAt)]
      : dns1123Subdomain(name).map((problem) => invalidField(nameAt, name, problem))),
    ...(namespace === ""
      ? [requiredField(namespaceAt)]
      : dns1123Label(namespace).map((problem) => invalidField(namespaceAt, namespace, problem))),
  ];
}
