/** Which volumes must be attached to which nodes. */
import { createHash } from "node:crypto";
import type { Node } from "../../../api/core/node/schema.ts";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { CSIDriver } from "../../../api/storage/csi-driver/schema.ts";

const MANAGED_BY_CONTROLLER = "volumes.kubernetes.io/controller-managed-attach-detach";
const KEEPS_TERMINATED_PODS = "volumes.kubernetes.io/keep-terminated-pod-volumes";
const OUT_OF_SERVICE = "node.kubernetes.io/out-of-service";

/** A volume that must be attached to a node. */
export interface AttachableVolume {
  /** The name of its VolumeAttachment. */
  readonly attachment: string;
  readonly nodeName: string;
  /** `kubernetes.io/csi/<driver>^<handle>` */
  readonly uniqueName: string;
  readonly driver: string;
  readonly handle: string;
  readonly persistentVolume: PersistentVolume;
}

/** The name by which nodes report the volume. */
export function uniqueVolumeName(driver: string, handle: string): string {
  return `kubernetes.io/csi/${driver}^${handle}`;
}

function attachmentName(driver: string, handle: string, nodeName: string): string {
  return `csi-${createHash("sha256").update(`${handle}${driver}${nodeName}`).digest("hex")}`;
}

/** Whether the name is one of this controller's or of a node agent's, and not chosen by a user. */
export function isGeneratedName(name: string): boolean {
  return /^csi-[0-9a-f]{64}$/.test(name);
}

export interface VolumeSources {
  readonly claim: (namespace: string, name: string) => PersistentVolumeClaim | undefined;
  readonly volume: (name: string) => PersistentVolume | undefined;
  readonly driver: (name: string) => CSIDriver | undefined;
}

/** Undefined while the claim is not bound, and for volumes that are mounted without being attached. */
export function attachableVolumeOf(
  pod: Pod,
  claimName: string,
  { claim: findClaim, volume: findVolume, driver: findDriver }: VolumeSources,
): AttachableVolume | undefined {
  const nodeName = pod.spec?.nodeName ?? "";
  const claim = findClaim(pod.metadata?.namespace ?? "", claimName);
  if (claim?.status?.phase !== "Bound") return undefined;
  const persistentVolume = findVolume(claim.spec?.volumeName ?? "");
  if (persistentVolume?.spec?.csi === undefined) return undefined;
  if (persistentVolume.spec.claimRef?.uid !== claim.metadata?.uid) return undefined;
  const { driver, volumeHandle: handle } = persistentVolume.spec.csi;
  if (findDriver(driver)?.spec.attachRequired === false) return undefined;
  return {
    attachment: attachmentName(driver, handle, nodeName),
    nodeName,
    uniqueName: uniqueVolumeName(driver, handle),
    driver,
    handle,
    persistentVolume,
  };
}

/** Whether the pod still needs its volumes on its node. */
export function needsVolumes(pod: Pod, node: Node | undefined): boolean {
  if (!pod.spec?.nodeName || node === undefined || !isManaged(node)) return false;
  return !isTerminated(pod) || node.metadata?.annotations?.[KEEPS_TERMINATED_PODS] === "true";
}

/** The node's agent leaves attaching and detaching to this controller. */
export function isManaged({ metadata }: Node): boolean {
  return metadata?.annotations?.[MANAGED_BY_CONTROLLER] !== undefined;
}

function isTerminated({ metadata, status }: Pod): boolean {
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return true;
  if (metadata?.deletionTimestamp === undefined) return false;
  return (status?.containerStatuses ?? []).every(
    ({ state }) => state?.terminated !== undefined || state?.waiting !== undefined,
  );
}

export function isOutOfService({ spec }: Node): boolean {
  return (spec?.taints ?? []).some(({ key }) => key === OUT_OF_SERVICE);
}

export function isReady({ status }: Node): boolean {
  return (status?.conditions ?? []).some(({ type, status: value }) => type === "Ready" && value === "True");
}

/** Whether the volume may be attached to several nodes at the same time. */
export function allowsMultiAttach({ spec }: PersistentVolume): boolean {
  const { accessModes = [] } = spec ?? {};
  return accessModes.length === 0 || accessModes.includes("ReadOnlyMany") || accessModes.includes("ReadWriteMany");
}
