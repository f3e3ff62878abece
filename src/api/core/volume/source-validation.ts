/**
 * Rules for volume sources that pods and persistent volumes share. Each gets the path of the source. `validation.ts`
 * and `persistent-volume/source-validation.ts` have the rules for one of the two.
 */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  tooLong,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, key } from "../../../schema/value/field-path.ts";
import { dns1123Label, dns1123Subdomain } from "../../meta/validation/names.ts";
import type {
  AzureDiskVolumeSource,
  FCVolumeSource,
  FlockerVolumeSource,
  HostPathVolumeSource,
  NFSVolumeSource,
  QuobyteVolumeSource,
} from "./schema.ts";

type Check<T> = (source: T, path: string) => readonly FieldError[];

/** Requires non-empty fields. */
export function requireFields<T extends object>(
  source: T,
  path: string,
  ...names: readonly (keyof T & string)[]
): readonly FieldError[] {
  const isEmpty = (value: unknown): boolean =>
    value === undefined || value === "" || (Array.isArray(value) && value.length === 0);
  return names.filter((name) => isEmpty(source[name])).map((name) => requiredField(child(path, name)));
}

export function validateNoBacksteps(text: string, path: string): readonly FieldError[] {
  return text.split("/").includes("..") ? [invalidField(path, text, "must not contain '..'")] : [];
}

export const validateHostPath: Check<HostPathVolumeSource> = (source, path) => {
  if (source.path === "") return [requiredField(child(path, "path"))];
  const type: string = source.type ?? "";
  return [
    ...validateNoBacksteps(source.path, child(path, "path")),
    ...(HOST_PATH_TYPES.includes(type) ? [] : [notSupported(child(path, "type"), type, HOST_PATH_TYPES)]),
  ];
};

const HOST_PATH_TYPES = [
  "",
  "BlockDevice",
  "CharDevice",
  "Directory",
  "DirectoryOrCreate",
  "File",
  "FileOrCreate",
  "Socket",
];

function validateByte(value: number | undefined, path: string): readonly FieldError[] {
  return value === undefined || (value >= 0 && value <= 255)
    ? []
    : [invalidField(path, value, "must be between 0 and 255, inclusive")];
}

/** The partition of a disk; 0 is the whole disk. */
export function validatePartition(partition: number | undefined, path: string): readonly FieldError[] {
  if (partition === undefined || (partition >= 0 && partition <= 255)) return [];
  return [invalidField(path, partition, "must be between 1 and 255, inclusive")];
}

export const validateNfs: Check<NFSVolumeSource> = (source, path) => [
  ...requireFields(source, path, "server", "path"),
  ...(source.path.startsWith("/") ? [] : [invalidField(child(path, "path"), source.path, "must be an absolute path")]),
];

export interface ISCSI {
  readonly targetPortal: string;
  readonly iqn: string;
  readonly lun: number;
  readonly chapAuthDiscovery?: boolean | undefined;
  readonly chapAuthSession?: boolean | undefined;
  readonly secretRef?: { readonly name?: string | undefined } | undefined;
  readonly initiatorName?: string | undefined;
}

/** The formats of names, by prefix. */
const iscsiNames: Readonly<Record<string, RegExp>> = {
  iqn: /iqn\.\d{4}-\d{2}\.([a-zA-Z0-9-.]+)(:[^,;*&$|\s]+)$/,
  eui: /^eui.[a-zA-Z0-9]{16}$/,
  naa: /^naa.[a-zA-Z0-9]{32}$/,
};
const ISCSI_MESSAGE = "must be valid format";
const ISCSI_START = "must be valid format starting with iqn, eui, or naa";
/** The maximum length of the target's name on the node. */
const ISCSI_NAME_MAX = 64;
const ISCSI_TOO_LONG =
  "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";

function validateIscsiName(name: string, path: string, unknown: string): readonly FieldError[] {
  const pattern = iscsiNames[name.slice(0, 3)];
  if (pattern === undefined) return [invalidField(path, name, unknown)];
  return pattern.test(name) ? [] : [invalidField(path, name, ISCSI_MESSAGE)];
}

/** `unknown` is the message for a name with another prefix. */
export function validateIscsi(source: ISCSI, path: string, unknown = ISCSI_START): readonly FieldError[] {
  const { iqn, initiatorName, secretRef } = source;
  const needsSecret = (source.chapAuthDiscovery === true || source.chapAuthSession === true) && secretRef === undefined;
  return [
    ...requireFields(source, path, "targetPortal", "iqn"),
    ...(iqn === "" ? [] : validateIscsiName(iqn, child(path, "iqn"), unknown)),
    ...validateByte(source.lun, child(path, "lun")),
    ...(needsSecret ? [requiredField(child(path, "secretRef"))] : []),
    ...(initiatorName === undefined ? [] : validateIscsiName(initiatorName, child(path, "initiatorname"), unknown)),
  ];
}

/** With `initiatorName`, the names of volume and target are concatenated. `path` and `value` are those of the error. */
export function validateIscsiLength(source: ISCSI, volume: string, path: string, value: string): readonly FieldError[] {
  const length = Buffer.byteLength(`${volume}:${source.targetPortal}`);
  return source.initiatorName === undefined || length <= ISCSI_NAME_MAX
    ? []
    : [invalidField(path, value, ISCSI_TOO_LONG)];
}

export const validateFc: Check<FCVolumeSource> = ({ targetWWNs = [], wwids = [], lun }, path) => {
  const at = child(path, "targetWWNs");
  if (targetWWNs.length === 0 && wwids.length === 0) {
    return [requiredField(at, "must specify either targetWWNs or wwids, but not both")];
  }
  const errors: FieldError[] = [];
  if (targetWWNs.length > 0 && wwids.length > 0) {
    errors.push(invalidField(at, targetWWNs, "targetWWNs and wwids can not be specified simultaneously"));
  }
  if (targetWWNs.length === 0) return errors;
  if (lun === undefined)
    return [...errors, requiredField(child(path, "lun"), "lun is required if targetWWNs is specified")];
  return [...errors, ...validateByte(lun, child(path, "lun"))];
};

export const validateFlocker: Check<FlockerVolumeSource> = ({ datasetName = "", datasetUUID = "" }, path) => {
  const errors: FieldError[] = [];
  if (datasetName === "" && datasetUUID === "") {
    errors.push(requiredField(path, "one of datasetName and datasetUUID is required"));
  }
  if (datasetName !== "" && datasetUUID !== "") {
    errors.push(invalidField(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"));
  }
  if (datasetName.includes("/")) {
    errors.push(invalidField(child(path, "datasetName"), datasetName, "must not contain '/'"));
  }
  return errors;
};

const QUOBYTE_TENANT_MAX = 64;
const HOSTS = "must be a host:port pair or multiple pairs separated by commas";

export const validateQuobyte: Check<QuobyteVolumeSource> = ({ registry, tenant = "", volume }, path) => {
  const errors: FieldError[] = [];
  const at = child(path, "registry");
  if (registry === "") errors.push(requiredField(at, HOSTS));
  else if (Buffer.byteLength(tenant) > QUOBYTE_TENANT_MAX) {
    errors.push(requiredField(child(path, "tenant"), "must be a UUID and may not exceed a length of 64 characters"));
  } else {
    const bad = registry.split(",").filter((pair) => !/^(?:[^:[\]]*|\[[^[\]]*\]):[^:[\]]*$/.test(pair));
    errors.push(...validateEach(bad, () => [invalidField(at, registry, HOSTS)]));
  }
  return volume === "" ? [...errors, requiredField(child(path, "volume"))] : errors;
};

const CACHING_MODES = ["None", "ReadOnly", "ReadWrite"];
const DISK_KINDS = ["Dedicated", "Managed", "Shared"];
const MANAGED_URIS = [
  "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
];
const BLOB_URIS = ["https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"];

export const validateAzureDisk: Check<AzureDiskVolumeSource> = (source, path) => {
  const errors: FieldError[] = [...requireFields(source, path, "diskName", "diskURI")];
  const { cachingMode, kind, diskURI } = source;
  if (cachingMode !== undefined && !CACHING_MODES.includes(cachingMode)) {
    errors.push(notSupported(child(path, "cachingMode"), cachingMode, CACHING_MODES));
  }
  if (kind === undefined) return errors;
  if (!DISK_KINDS.includes(kind)) errors.push(notSupported(child(path, "kind"), kind, DISK_KINDS));
  const at = child(path, "diskURI");
  const managed = kind === "Managed";
  if (managed && !diskURI.startsWith("/subscriptions/")) {
    errors.push(notSupported(at, diskURI, MANAGED_URIS));
  }
  if (!managed && !diskURI.startsWith("https://")) errors.push(notSupported(at, diskURI, BLOB_URIS));
  return errors;
};

export interface Flex {
  readonly driver: string;
  readonly options?: Readonly<Record<string, string>> | undefined;
}

export const validateFlex: Check<Flex> = (source, path) => [
  ...requireFields(source, path, "driver"),
  ...Object.keys(source.options ?? {})
    .filter((option) => isReserved(option))
    .map((option) =>
      invalidField(key(child(path, "options"), option), option, "kubernetes.io and k8s.io namespaces are reserved"),
    ),
];

function isReserved(option: string): boolean {
  const [namespace = ""] = option.split("/");
  return /\.(?:kubernetes|k8s)\.io$/.test(`.${namespace.toLowerCase()}`);
}

export interface StorageOS {
  readonly volumeName?: string | undefined;
  readonly volumeNamespace?: string | undefined;
}

export const validateStorageOS: Check<StorageOS> = ({ volumeName = "", volumeNamespace = "" }, path) => {
  const label = (name: string, at: string) => dns1123Label(name).map((problem) => invalidField(at, name, problem));
  return [
    ...(volumeName === "" ? [requiredField(child(path, "volumeName"))] : label(volumeName, child(path, "volumeName"))),
    ...(volumeNamespace === "" ? [] : label(volumeNamespace, child(path, "volumeNamespace"))),
  ];
};

const DRIVER_NAME_MAX = 63;

/** Driver names may contain upper-case letters. */
export function validateDriverName(driver: string, path: string): readonly FieldError[] {
  return [
    ...(driver === "" ? [requiredField(path)] : []),
    ...(Buffer.byteLength(driver) > DRIVER_NAME_MAX ? [tooLong(path, DRIVER_NAME_MAX)] : []),
    ...dns1123Subdomain(driver.toLowerCase()).map((problem) => invalidField(path, driver, problem)),
  ];
}

/** Rejects all sources but the first. */
export function validateSingleSource(names: readonly string[], path: string): readonly FieldError[] {
  if (names.length === 0) return [requiredField(path, "must specify a volume type")];
  return names.slice(1).map((name) => forbiddenField(child(path, name), "may not specify more than 1 volume type"));
}
