/** A CSI volume, from a persistent volume or inline in a pod. */
import { createHash } from "node:crypto";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import { podNamespace, podUid } from "../../pods/pod-fields.ts";

export interface SecretName {
  readonly namespace: string;
  readonly name: string;
}

export interface CsiVolume {
  /** The persistent volume's name, or that of the pod's volume. */
  readonly specName: string;
  readonly driver: string;
  readonly handle: string;
  /** Inline in the pod; neither attached nor staged. */
  readonly isEphemeral: boolean;
  readonly isBlock: boolean;
  readonly readOnly: boolean;
  readonly fsType: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly mountOptions: readonly string[];
  readonly accessModes: readonly string[];
  readonly stageSecret: SecretName | undefined;
  readonly publishSecret: SecretName | undefined;
  readonly expandSecret: SecretName | undefined;
}

/** Undefined when the volume is no CSI volume. */
export function toCsiVolume(pod: Pod, volume: Volume, bound: PersistentVolume | undefined): CsiVolume | undefined {
  return bound === undefined ? fromPod(pod, volume) : fromPersistentVolume(volume, bound);
}

/** The volume's name in the node's status. */
export function toUniqueName({ driver, handle }: Pick<CsiVolume, "driver" | "handle">): string {
  return `kubernetes.io/csi/${driver}^${handle}`;
}

/** Name of the VolumeAttachment. */
export function toAttachmentName({ driver, handle }: Pick<CsiVolume, "driver" | "handle">, nodeName: string): string {
  return `csi-${hash(handle + driver + nodeName)}`;
}

export function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function fromPod(pod: Pod, { name, csi }: Volume): CsiVolume | undefined {
  if (csi === undefined) return undefined;
  const secret = csi.nodePublishSecretRef?.name;
  return {
    specName: name,
    driver: csi.driver,
    handle: `csi-${hash(podUid(pod) + name)}`,
    isEphemeral: true,
    isBlock: false,
    readOnly: csi.readOnly === true,
    fsType: csi.fsType ?? "",
    attributes: csi.volumeAttributes ?? {},
    mountOptions: [],
    accessModes: [],
    stageSecret: undefined,
    publishSecret: secret === undefined ? undefined : { namespace: podNamespace(pod), name: secret },
    expandSecret: undefined,
  };
}

function fromPersistentVolume(volume: Volume, { metadata, spec = {} }: PersistentVolume): CsiVolume | undefined {
  const { csi } = spec;
  if (csi === undefined) return undefined;
  return {
    specName: metadata?.name ?? volume.name,
    driver: csi.driver,
    handle: csi.volumeHandle,
    isEphemeral: false,
    isBlock: spec.volumeMode === "Block",
    readOnly: csi.readOnly === true || volume.persistentVolumeClaim?.readOnly === true,
    fsType: csi.fsType ?? "",
    attributes: csi.volumeAttributes ?? {},
    mountOptions: spec.mountOptions ?? [],
    accessModes: spec.accessModes ?? [],
    stageSecret: toSecretName(csi.nodeStageSecretRef),
    publishSecret: toSecretName(csi.nodePublishSecretRef),
    expandSecret: toSecretName(csi.nodeExpandSecretRef),
  };
}

function toSecretName(
  reference: { readonly name?: string | undefined; readonly namespace?: string | undefined } | undefined,
): SecretName | undefined {
  return reference && { namespace: reference.namespace ?? "", name: reference.name ?? "" };
}
