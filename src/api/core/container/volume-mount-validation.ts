/** Rules for volume mounts and volume devices of containers. */
import {
  errorsMax,
  type FieldError,
  forbiddenField,
  invalidField,
  notFoundField,
  notSupported,
  requiredField,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { validateDescendingPath } from "../volume/file-validation.ts";
import type { Volume } from "../volume/schema.ts";
import type { Container, VolumeMount } from "./schema.ts";

type Volumes = ReadonlyMap<string, Volume>;

export function validateMounts(container: Container, path: string, volumes: Volumes): readonly FieldError[] {
  const errors: FieldError[] = [];
  const mountPaths = new Set<string>();
  const devices = container.volumeDevices ?? [];
  const deviceNames = new Set(devices.map(({ name }) => name));
  const devicePaths = new Set(devices.map(({ devicePath }) => devicePath));
  const list = child(path, "volumeMounts");
  for (const [i, mount] of (container.volumeMounts ?? []).entries()) {
    if (errors.length >= errorsMax) break;
    const [name, mountPath] = [child(index(list, i), "name"), child(index(list, i), "mountPath")];
    if (mount.name === "") errors.push(requiredField(name));
    if (!volumes.has(mount.name)) errors.push(notFoundField(name, mount.name));
    if (mount.mountPath === "") errors.push(requiredField(mountPath));
    if (mountPaths.has(mount.mountPath)) errors.push(invalidField(mountPath, mount.mountPath, "must be unique"));
    mountPaths.add(mount.mountPath);
    if (deviceNames.has(mount.name)) {
      errors.push(invalidField(name, mount.name, "must not already exist in volumeDevices"));
    }
    if (devicePaths.has(mount.mountPath)) {
      errors.push(invalidField(mountPath, mount.mountPath, "must not already exist as a path in volumeDevices"));
    }
    errors.push(...validateMountMembers(mount, container, list, index(list, i)));
  }
  return errors;
}

const PROPAGATIONS = ["Bidirectional", "HostToContainer", "None"];
const RECURSIONS = ["Disabled", "Enabled", "IfPossible"];

/** As in Kubernetes, the paths of most of these fields lack the list index. */
function validateMountMembers(mount: VolumeMount, container: Container, list: string, at: string): FieldError[] {
  const { subPath = "", subPathExpr = "", mountPropagation } = mount;
  const errors: FieldError[] = [...validateDescendingPath(subPath, child(list, "subPath"))];
  if (subPathExpr !== "" && subPath !== "") {
    errors.push(invalidField(child(at, "subPathExpr"), subPathExpr, "subPathExpr and subPath are mutually exclusive"));
  }
  errors.push(...validateDescendingPath(subPathExpr, child(list, "subPathExpr")));
  if (mountPropagation !== undefined) {
    const field = child(list, "mountPropagation");
    if (!PROPAGATIONS.includes(mountPropagation)) errors.push(notSupported(field, mountPropagation, PROPAGATIONS));
    if (mountPropagation === "Bidirectional" && container.securityContext?.privileged !== true) {
      const detail = "Bidirectional mount propagation is available only to privileged containers";
      errors.push(forbiddenField(field, detail));
    }
  }
  return [...errors, ...validateRecursiveReadOnly(mount, child(list, "recursiveReadOnly"))];
}

function validateRecursiveReadOnly(mount: VolumeMount, path: string): readonly FieldError[] {
  const { recursiveReadOnly, readOnly, mountPropagation = "None" } = mount;
  if (recursiveReadOnly === undefined || recursiveReadOnly === "Disabled") return [];
  if (!RECURSIONS.includes(recursiveReadOnly)) return [notSupported(path, recursiveReadOnly, RECURSIONS)];
  const errors: FieldError[] = [];
  if (readOnly !== true) errors.push(forbiddenField(path, "may only be specified when readOnly is true"));
  if (mountPropagation !== "None") {
    errors.push(forbiddenField(path, "may only be specified when mountPropagation is None or not specified"));
  }
  return errors;
}

export function validateDevices(container: Container, path: string, volumes: Volumes): readonly FieldError[] {
  const errors: FieldError[] = [];
  const [names, paths] = [new Set<string>(), new Set<string>()];
  const mounts = container.volumeMounts ?? [];
  const mountNames = new Set(mounts.map((mount) => mount.name));
  const mountPaths = new Set(mounts.map(({ mountPath }) => mountPath));
  const list = child(path, "volumeDevices");
  for (const [i, { name, devicePath }] of (container.volumeDevices ?? []).entries()) {
    if (errors.length >= errorsMax) break;
    const [nameAt, pathAt] = [child(index(list, i), "name"), child(index(list, i), "devicePath")];
    const volume = volumes.get(name);
    if (name === "") errors.push(requiredField(nameAt));
    if (names.has(name)) errors.push(invalidField(nameAt, name, "must be unique"));
    if (volume === undefined) errors.push(notFoundField(nameAt, name));
    else if (volume.persistentVolumeClaim === undefined && volume.ephemeral === undefined) {
      const detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
      errors.push(invalidField(nameAt, name, detail));
    }
    if (devicePath === "") errors.push(requiredField(pathAt));
    if (paths.has(devicePath)) errors.push(invalidField(pathAt, devicePath, "must be unique"));
    if (devicePath.split("/").includes("..")) {
      errors.push(invalidField(pathAt, devicePath, "can not contain backsteps ('..')"));
    } else paths.add(devicePath);
    if (mountNames.has(name)) {
      errors.push(invalidField(nameAt, name, "must not already exist in volumeMounts"));
    }
    if (mountPaths.has(devicePath)) {
      errors.push(invalidField(pathAt, devicePath, "must not already exist as a path in volumeMounts"));
    }
    if (name !== "") names.add(name);
  }
  return errors;
}
