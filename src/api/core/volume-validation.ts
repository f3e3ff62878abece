/** Rules for the volumes of a pod: unique names, exactly one source, paths that stay inside the volume. */
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
} from "../../schema/field-error.ts";
import { child, index } from "../../schema/field-path.ts";
import { dns1123Label } from "../meta/names.ts";
import type { Volume } from "./volume.ts";

const MAX_MODE = 0o777;

export interface CheckedVolumes {
  readonly errors: readonly FieldError[];
  /** Names that mounts may refer to: those of volumes without fault. */
  readonly names: ReadonlySet<string>;
}

export function validateVolumes(volumes: readonly Volume[], path: string): CheckedVolumes {
  const seen = new Set<string>();
  const names = new Set<string>();
  const errors: FieldError[] = [];
  for (const [i, volume] of volumes.entries()) {
    const at = index(path, i);
    const name = child(at, "name");
    const before = errors.length;
    if (!volume.name) errors.push(requiredField(name));
    else errors.push(...dns1123Label(volume.name).map((problem) => invalidField(name, volume.name, problem)));
    if (seen.has(volume.name)) errors.push(duplicateField(name, volume.name));
    seen.add(volume.name);
    errors.push(...validateSource(volume, at));
    if (errors.length === before) names.add(volume.name);
  }
  return { errors, names };
}

/**
 * Members that a source must have, by source. Kubernetes names the disk of Google's cloud differently in its errors.
 */
const requiredMembers: Readonly<Record<string, readonly string[]>> = {
  awsElasticBlockStore: ["volumeID"],
  azureDisk: ["diskName", "diskURI"],
  azureFile: ["secretName", "shareName"],
  cephfs: ["monitors"],
  cinder: ["volumeID"],
  csi: ["driver"],
  ephemeral: ["volumeClaimTemplate"],
  flexVolume: ["driver"],
  gcePersistentDisk: ["pdName"],
  gitRepo: ["repository"],
  glusterfs: ["endpoints", "path"],
  iscsi: ["targetPortal", "iqn"],
  nfs: ["server", "path"],
  photonPersistentDisk: ["pdID"],
  portworxVolume: ["volumeID"],
  quobyte: ["registry", "volume"],
  rbd: ["monitors", "image"],
  scaleIO: ["gateway", "system", "volumeName"],
  storageos: ["volumeName"],
  vsphereVolume: ["volumePath"],
};
const spelling: Readonly<Record<string, string>> = { gcePersistentDisk: "persistentDisk" };

function validateRequired(source: string, members: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  const at = child(path, spelling[source] ?? source);
  return (requiredMembers[source] ?? [])
    .filter((name) => members[name] === undefined || (members[name] as { readonly length?: number }).length === 0)
    .map((name) => requiredField(child(at, name)));
}

function validateSource(volume: Volume, path: string): FieldError[] {
  const sources = Object.entries(volume).filter(([field, value]) => field !== "name" && value !== undefined);
  if (sources.length === 0) return [requiredField(path, "must specify a volume type")];
  const errors = sources
    .slice(1)
    .map(([field]) => forbiddenField(child(path, field), "may not specify more than 1 volume type"));
  const [source, members] = sources[0] ?? ["", {}];
  errors.push(...validateRequired(source, members as Readonly<Record<string, unknown>>, path));
  const { hostPath, secret, configMap, downwardAPI, projected, persistentVolumeClaim } = volume;
  if (hostPath !== undefined) errors.push(...validateHostPath(hostPath.path, child(child(path, "hostPath"), "path")));
  if (secret !== undefined) {
    const at = child(path, "secret");
    if (!secret.secretName) errors.push(requiredField(child(at, "secretName")));
    errors.push(...validateFiles(secret, at));
  }
  if (configMap !== undefined) {
    const at = child(path, "configMap");
    if (!configMap.name) errors.push(requiredField(child(at, "name")));
    errors.push(...validateFiles(configMap, at));
  }
  if (downwardAPI !== undefined) errors.push(...validateFiles(downwardAPI, child(path, "downwardAPI")));
  if (projected !== undefined) errors.push(...validateProjected(projected, child(path, "projected")));
  if (persistentVolumeClaim !== undefined && !persistentVolumeClaim.claimName) {
    errors.push(requiredField(child(child(path, "persistentVolumeClaim"), "claimName")));
  }
  return errors;
}

function validateHostPath(hostPath: string, path: string): FieldError[] {
  if (!hostPath) return [requiredField(path)];
  return hostPath.split("/").includes("..") ? [invalidField(path, hostPath, "must not contain '..'")] : [];
}

interface FilesVolume {
  readonly defaultMode?: number | undefined;
  readonly items?: readonly FileItem[] | undefined;
}

interface FileItem {
  readonly key?: string;
  readonly path: string;
  readonly mode?: number | undefined;
}

function validateFiles(volume: FilesVolume, path: string): FieldError[] {
  const errors = validateMode(volume.defaultMode, child(path, "defaultMode"));
  for (const [i, item] of (volume.items ?? []).entries()) {
    // Items of the downward API have no key, and Kubernetes names their faults at the volume.
    const at = item.key === undefined ? path : index(child(path, "items"), i);
    if (item.key === "") errors.push(requiredField(child(at, "key")));
    errors.push(...validateFilePath(item.path, child(at, "path")));
    errors.push(...validateMode(item.mode, child(at, "mode")));
  }
  return errors;
}

function validateMode(mode: number | undefined, path: string): FieldError[] {
  if (mode === undefined || (mode >= 0 && mode <= MAX_MODE)) return [];
  return [invalidField(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")];
}

/** A file's path inside the volume can never leave it. */
function validateFilePath(file: string, path: string): FieldError[] {
  if (!file) return [requiredField(path)];
  if (file.startsWith("/")) return [invalidField(path, file, "must be a relative path")];
  const errors: FieldError[] = [];
  if (file.split("/").includes("..")) errors.push(invalidField(path, file, "must not contain '..'"));
  if (file.startsWith("..") && errors.length === 0) errors.push(invalidField(path, file, "must not start with '..'"));
  return errors;
}

type Projected = NonNullable<Volume["projected"]>;

function validateProjected(projected: Projected, path: string): FieldError[] {
  const errors = validateMode(projected.defaultMode, child(path, "defaultMode"));
  for (const [i, source] of (projected.sources ?? []).entries()) {
    const at = index(child(path, "sources"), i);
    const given = Object.entries(source).filter(([, value]) => value !== undefined);
    if (given.length > 1) {
      errors.push(forbiddenField(at, "may not specify more than 1 volume type per source"));
    }
    const { secret, configMap, downwardAPI, serviceAccountToken } = source;
    for (const [field, files] of [["secret", secret] as const, ["configMap", configMap] as const]) {
      if (files === undefined) continue;
      if (!files.name) errors.push(requiredField(child(child(at, field), "name")));
      errors.push(...validateFiles(files, child(at, field)));
    }
    if (downwardAPI !== undefined) errors.push(...validateFiles(downwardAPI, child(at, "downwardAPI")));
    if (serviceAccountToken !== undefined) {
      errors.push(...validateFilePath(serviceAccountToken.path, child(path, "path")));
    }
  }
  return errors;
}
