/** From a claim of a pod to what it is bound to on this node. */
import { stat } from "node:fs/promises";
import type { PersistentVolume } from "../../api/core/persistent-volume/schema.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Volume } from "../../api/core/volume/schema.ts";
import { allContainers, podName, podNamespace, podUid } from "../pods/pod-fields.ts";
import { validateHostPath } from "./local/host-path.ts";

/** Undefined: there is no such object. */
export interface ClaimSource {
  claim(namespace: string, name: string): Promise<PersistentVolumeClaim | undefined>;
  persistentVolume(name: string): Promise<PersistentVolume | undefined>;
  /** The claim's volume has that size now, in this node's file system too. */
  updateClaimSize?(claim: PersistentVolumeClaim, storage: string): Promise<void>;
}

/** What is wrong with the claim itself, rather than with mounting what it stands for. */
export class ClaimError extends Error {
  override readonly name = "ClaimError";
}

/** The name of the claim that a volume stands for; undefined when it is of another kind. */
export function claimName(pod: Pod, volume: Volume): string | undefined {
  if (volume.ephemeral !== undefined) return `${podName(pod)}-${volume.name}`;
  return volume.persistentVolumeClaim?.claimName;
}

export interface BoundClaim {
  readonly claim: PersistentVolumeClaim;
  readonly volume: PersistentVolume;
}

/** What the claim is bound to. Rejects with a `ClaimError` in Kubernetes' words. */
export async function resolveClaim(source: ClaimSource, pod: Pod, volume: Volume): Promise<BoundClaim> {
  const name = claimName(pod, volume) ?? "";
  const namespace = podNamespace(pod);
  const problem = (text: string): ClaimError => new ClaimError(`error processing PVC ${namespace}/${name}: ${text}`);
  const claim = await source.claim(namespace, name);
  if (claim === undefined)
    throw problem(`failed to fetch PVC from API server: persistentvolumeclaims "${name}" not found`);
  if (volume.ephemeral !== undefined && !isOwnedBy(claim, pod)) {
    throw new ClaimError(
      `PVC ${namespace}/${name} was not created for pod ${namespace}/${podName(pod)} (pod is not owner)`,
    );
  }
  if (claim.metadata?.deletionTimestamp !== undefined) throw problem("PVC is being deleted");
  const bound = claim.spec?.volumeName ?? "";
  if (claim.status?.phase !== "Bound" || bound === "") throw problem("PVC is not bound");
  const found = await source.persistentVolume(bound);
  if (found === undefined)
    throw problem(`failed to get PV ${bound} from API server: persistentvolumes "${bound}" not found`);
  if (found.spec?.claimRef?.uid !== claim.metadata?.uid) {
    throw problem(`PV ${bound} is bound to another claim`);
  }
  validateVolumeMode(pod, volume.name, found);
  return { claim, volume: found };
}

/** Containers mount file systems, and are given block devices. */
function validateVolumeMode(pod: Pod, name: string, { spec = {} }: PersistentVolume): void {
  const mode = spec.volumeMode ?? "Filesystem";
  const field = mode === "Block" ? "volumeMounts" : "volumeDevices";
  const isMisused = allContainers(pod).some(({ spec: container }) =>
    (container[field] ?? []).some((each) => each.name === name),
  );
  if (isMisused) throw new ClaimError(`volume ${name} has volumeMode ${mode}, but is specified in ${field}`);
}

/** The path on this node that a volume consists of. Rejects when it is of a kind that the agent cannot provide. */
export async function resolveHostPath({ metadata, spec = {} }: PersistentVolume): Promise<string> {
  if (spec.local !== undefined) {
    const { path } = spec.local;
    const found = await stat(path).catch(() => undefined);
    const isBlock = found?.isBlockDevice() === true;
    if (spec.volumeMode === "Block" && !isBlock) throw new Error(`path "${path}" is not a block device`);
    if (!isBlock) await validateHostPath({ path, type: "Directory" });
    return path;
  }
  if (spec.hostPath === undefined) {
    const kind = Object.keys(spec).find((key) => !nonSourceFields.has(key)) ?? "(none)";
    throw new Error(`persistent volume "${metadata?.name}" of type ${kind} is not supported by this agent`);
  }
  if (spec.volumeMode === "Block") throw new Error("a hostPath volume cannot be given to containers as a block device");
  // An unset type makes nothing here: what is mounted has to be there.
  await validateHostPath(spec.hostPath.type ? spec.hostPath : { path: spec.hostPath.path, type: "DirectoryOrCreate" });
  return spec.hostPath.path;
}

/** Members of a persistent volume that are not what it consists of. */
const nonSourceFields: ReadonlySet<string> = new Set([
  "accessModes",
  "capacity",
  "claimRef",
  "mountOptions",
  "nodeAffinity",
  "persistentVolumeReclaimPolicy",
  "storageClassName",
  "volumeAttributesClassName",
  "volumeMode",
]);

function isOwnedBy(claim: PersistentVolumeClaim, pod: Pod): boolean {
  return (claim.metadata?.ownerReferences ?? []).some(
    ({ controller, uid }) => controller === true && uid === podUid(pod),
  );
}
