/** Rules for the files in volumes: keys, paths within the volume, modes. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { validateSignerName } from "../../certificates/certificate-signing-request/signer-name.ts";
import { trustBundleNameProblems } from "../../certificates/cluster-trust-bundle/bundle-name.ts";
import { labelSelector as labelSelectorSchema } from "../../meta/label-selector.ts";
import { validateLabelSelector } from "../../meta/validation/label-selector.ts";
import { FILE_FIELDS, validateFieldRef, validateResourceFieldRef } from "../references/field-ref-validation.ts";
import {
  type ClusterTrustBundleProjection,
  clusterTrustBundleProjection,
  type DownwardAPIVolumeFile,
  type KeyToPath,
  type ProjectedVolumeSource,
  type VolumeProjection,
} from "./schema.ts";

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
  const usedPaths = new Set<string>();
  /** The errors of a file. Errors of paths in use have the path of the volume, as in Kubernetes. */
  const validateUnused = (file: string, shown: string): readonly FieldError[] =>
    usedPaths.size === usedPaths.add(file).size ? [invalidField(path, shown, "conflicting duplicate paths")] : [];
  return [
    ...validateMode(projected.defaultMode, child(path, "defaultMode")),
    ...validateEach(projected.sources ?? [], (source, i) => {
      const at = index(child(path, "sources"), i);
      const several = Object.values(source).filter((value) => value !== undefined).length > 1;
      return [
        ...validateProjectedFiles(source, at, validateUnused),
        ...validateServiceAccountToken(source.serviceAccountToken, at, path),
        ...validateTrustBundle(source.clusterTrustBundle, child(at, "clusterTrustBundle"), validateUnused),
        ...(several ? [forbiddenField(at, "may not specify more than 1 volume type per source")] : []),
      ];
    }),
  ];
}

type ValidateUnused = (file: string, shown: string) => readonly FieldError[];

function validateProjectedFiles(
  { secret, configMap, downwardAPI }: VolumeProjection,
  path: string,
  validateUnused: ValidateUnused,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  for (const [field, source] of [["secret", secret] as const, ["configMap", configMap] as const]) {
    if (source === undefined) continue;
    const { name = "", items = [] } = source;
    const at = child(path, field);
    if (name === "") errors.push(requiredField(child(at, "name")));
    errors.push(
      ...validateEach(items, (item, i) => [
        ...validateKeyToPath(item, index(child(at, "items"), i)),
        ...(item.path === "" ? [] : validateUnused(item.path, name)),
      ]),
    );
  }
  const files = validateEach(downwardAPI?.items ?? [], (file) => [
    ...validateDownwardFile(file, child(path, "downwardAPI")),
    ...(file.path === "" ? [] : validateUnused(file.path, file.path)),
  ]);
  return [...errors, ...files];
}

/** As in Kubernetes, errors of the path have the path of the volume. */
function validateServiceAccountToken(
  token: VolumeProjection["serviceAccountToken"],
  path: string,
  volume: string,
): readonly FieldError[] {
  if (token === undefined) return [];
  const { expirationSeconds, path: file } = token;
  const at = child(path, "serviceAccountToken.expirationSeconds");
  const errors: FieldError[] = [];
  if (expirationSeconds !== undefined && expirationSeconds < TOKEN_SECONDS_MIN) {
    errors.push(invalidField(at, expirationSeconds, "may not specify a duration less than 10 minutes"));
  }
  if (expirationSeconds !== undefined && expirationSeconds > TOKEN_SECONDS_MAX) {
    errors.push(invalidField(at, expirationSeconds, "may not specify a duration larger than 2^32 seconds"));
  }
  if (file === "") errors.push(requiredField(child(volume, "path")));
  return [...errors, ...validateFilePath(file, child(volume, "path"))];
}

function validateTrustBundle(
  bundle: ClusterTrustBundleProjection | undefined,
  path: string,
  validateUnused: ValidateUnused,
): readonly FieldError[] {
  if (bundle === undefined) return [];
  const file = bundle.path;
  return [
    ...validateTrustBundleSource(bundle, path),
    ...(file === "" ? [requiredField(child(path, "path"))] : []),
    ...validateFilePath(file, child(path, "path")),
    ...validateUnused(file, file),
  ];
}

function validateTrustBundleSource(bundle: ClusterTrustBundleProjection, path: string): readonly FieldError[] {
  const { name, signerName, labelSelector } = bundle;
  if (name !== undefined && signerName !== undefined) {
    return [
      invalidField(path, goStruct(clusterTrustBundleProjection, bundle), "only one of name and signerName may be used"),
    ];
  }
  if (signerName !== undefined) {
    const at = child(path, "signerName");
    return [
      ...(signerName === "" ? [requiredField(at, "must be a valid signer name")] : []),
      ...validateSignerName(signerName, at),
      ...validateLabelSelector(labelSelector, child(path, "labelSelector")),
    ];
  }
  if (name === undefined) return [requiredField(path, "either name or signerName must be specified")];
  // The name of a bundle begins with that of its signer.
  const colon = name.lastIndexOf(":");
  const signer = colon < 0 ? "" : name.slice(0, colon).replaceAll(":", "/");
  const detail = "labelSelector must be unset if name is specified";
  return [
    ...(name === "" ? [requiredField(child(path, "name"), "must be a valid object name")] : []),
    ...trustBundleNameProblems(name, signer).map((problem) =>
      invalidField(child(path, "name"), name, `not a valid clustertrustbundlename: ${problem}`),
    ),
    ...(labelSelector === undefined
      ? []
      : [invalidField(child(path, "labelSelector"), goStruct(labelSelectorSchema, labelSelector), detail)]),
  ];
}
