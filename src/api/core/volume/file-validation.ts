/** Rules for the files in volumes: keys, paths within the volume, modes. */
import {
  errorsMax,
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { FILE_FIELDS, validateFieldRef, validateResourceFieldRef } from "../references/field-ref-validation.ts";
import type { DownwardAPIVolumeFile, KeyToPath, ProjectedVolumeSource, VolumeProjection } from "./schema.ts";

const MODE_MAX = 0o777;
const TOKEN_SECONDS_MIN = 600;
const TOKEN_SECONDS_MAX = 2 ** 32;

/** The fields that ConfigMap and Secret volumes share. */
export interface FilesVolume {
  readonly defaultMode?: number | undefined;
  readonly items?: readonly KeyToPath[] | undefined;
}

export function validateFiles({ defaultMode, items = [] }: FilesVolume, path: string): readonly FieldError[] {
  return [
    ...validateMode(defaultMode, child(path, "defaultMode")),
    ...validateEach(items, (item, i) => validateKeyToPath(item, index(child(path, "items"), i))),
  ];
}

function validateKeyToPath(item: KeyToPath, path: string): readonly FieldError[] {
  return [
    ...(item.key === "" ? [requiredField(child(path, "key"))] : []),
    ...(item.path === "" ? [requiredField(child(path, "path"))] : []),
    ...validateFilePath(item.path, child(path, "path")),
    ...validateMode(item.mode, child(path, "mode")),
  ];
}

export function validateMode(mode: number | undefined, path: string): readonly FieldError[] {
  if (mode === undefined || (mode >= 0 && mode <= MODE_MAX)) return [];
  return [invalidField(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")];
}

/** A relative path without `..`. */
export function validateDescendingPath(file: string, path: string): readonly FieldError[] {
  return [
    ...(file.startsWith("/") ? [invalidField(path, file, "must be a relative path")] : []),
    ...(file.split("/").includes("..") ? [invalidField(path, file, "must not contain '..'")] : []),
  ];
}

/** Names that begin with two dots are reserved for atomic updates of the volume. */
function validateFilePath(file: string, path: string): readonly FieldError[] {
  const reserved = file.startsWith("..") && !file.startsWith("../");
  return [
    ...validateDescendingPath(file, path),
    ...(reserved ? [invalidField(path, file, "must not start with '..'")] : []),
  ];
}

/** `path` is the path of the volume: as in Kubernetes, the paths of these fields lack the list index. */
export function validateDownwardFile(file: DownwardAPIVolumeFile, path: string): readonly FieldError[] {
  const { fieldRef, resourceFieldRef, mode } = file;
  const errors: FieldError[] = [];
  if (file.path === "") errors.push(requiredField(child(path, "path")));
  errors.push(...validateFilePath(file.path, child(path, "path")));
  if (fieldRef !== undefined) {
    errors.push(...validateFieldRef(fieldRef, child(path, "fieldRef"), FILE_FIELDS));
    if (resourceFieldRef !== undefined) {
      errors.push(invalidField(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"));
    }
  } else if (resourceFieldRef !== undefined) {
    errors.push(...validateResourceFieldRef(resourceFieldRef, child(path, "resourceFieldRef"), true));
  } else errors.push(requiredField(path, "one of fieldRef and resourceFieldRef is required"));
  return [...errors, ...validateMode(mode, child(path, "mode"))];
}

export function validateProjected(projected: ProjectedVolumeSource, path: string): readonly FieldError[] {
  const errors: FieldError[] = [...validateMode(projected.defaultMode, child(path, "defaultMode"))];
  const usedPaths = new Set<string>();
  for (const [i, source] of (projected.sources ?? []).entries()) {
    if (errors.length >= errorsMax) break;
    const at = index(child(path, "sources"), i);
    errors.push(...validateProjection(source, at, path));
    for (const { name, file } of filesOf(source)) {
      if (errors.length >= errorsMax) break;
      if (usedPaths.has(file)) errors.push(invalidField(path, name, "conflicting duplicate paths"));
      else if (file !== "") usedPaths.add(file);
    }
    if (Object.values(source).filter((value) => value !== undefined).length > 1) {
      errors.push(forbiddenField(at, "may not specify more than 1 volume type per source"));
    }
  }
  return errors;
}

function filesOf({ secret, configMap, downwardAPI }: VolumeProjection) {
  return [
    ...(secret?.items ?? []).map(({ path }) => ({ name: secret?.name ?? "", file: path })),
    ...(configMap?.items ?? []).map(({ path }) => ({ name: configMap?.name ?? "", file: path })),
    ...(downwardAPI?.items ?? []).map(({ path }) => ({ name: path, file: path })),
  ];
}

function validateProjection(source: VolumeProjection, path: string, volume: string): readonly FieldError[] {
  const { secret, configMap, downwardAPI, serviceAccountToken } = source;
  const errors: FieldError[] = [];
  for (const [field, files] of [["secret", secret] as const, ["configMap", configMap] as const]) {
    if (files === undefined) continue;
    const at = child(path, field);
    if (!files.name) errors.push(requiredField(child(at, "name")));
    errors.push(...validateFiles(files, at));
  }
  const { items = [] } = downwardAPI ?? {};
  errors.push(...validateEach(items, (file) => validateDownwardFile(file, child(path, "downwardAPI"))));
  if (serviceAccountToken === undefined) return errors;
  const { expirationSeconds, path: file } = serviceAccountToken;
  const at = child(path, "serviceAccountToken.expirationSeconds");
  if (expirationSeconds !== undefined && expirationSeconds < TOKEN_SECONDS_MIN) {
    errors.push(invalidField(at, expirationSeconds, "may not specify a duration less than 10 minutes"));
  }
  if (expirationSeconds !== undefined && expirationSeconds > TOKEN_SECONDS_MAX) {
    errors.push(invalidField(at, expirationSeconds, "may not specify a duration larger than 2^32 seconds"));
  }
  if (file === "") errors.push(requiredField(child(volume, "path")));
  return [...errors, ...validateFilePath(file, child(volume, "path"))];
}
