/** Resolves the claims of pods to persistent volumes, and those to paths of this node. */
import { stat } from "node:fs/promises";
import type { PersistentVolume } from "../../api/core/persistent-volume/schema.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Volume } from "../../api/core/volume/schema.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { allContainers, podName, podNamespace, podUid } from "../pods/pod-fields.ts";
import { validateHostPath } from "./local/host-path.ts";
import { OperationError, UnresolvedError } from "./operation-error.ts";

const PROTECTION = "kubernetes.io/pvc-protection";

/** Undefined: there is no such object. */
export interface ClaimSource {
  claim(namespace: string, name: string): Promise<PersistentVolumeClaim | undefined>;
  persistentVolume(name: string): Promise<PersistentVolume | undefined>;
  /** Writes the new size to the claim's status, after the file system on this node was expanded. */
  updateClaimSize?(claim: PersistentVolumeClaim, storage: string): Promise<void>;
}

/** The claim cannot be used; nothing was mounted. */
export class ClaimError extends UnresolvedError {
  override readonly name = "ClaimError";
}

/** The name of a volume's claim; undefined for volumes without one. */
export function claimName(pod: Pod, volume: Volume): string | undefined {
  if (volume.ephemeral !== undefined) return `${podName(pod)}-${volume.name}`;
  return volume.persistentVolumeClaim?.claimName;
}

export interface BoundClaim {
  readonly claim: PersistentVolumeClaim;
  readonly volume: PersistentVolume;
}

/** The claim and the volume it is bound to. Rejects with a `ClaimError` that has kubelet's message. */
export async function resolveClaim(source: ClaimSource, pod: Pod, volume: Volume): Promise<BoundClaim> {
  const name = claimName(pod, volume) ?? "";
  const namespace = podNamespace(pod);
  const problem = (text: string): ClaimError => new ClaimError(`error processing PVC ${namespace}/${name}: ${text}`);
  const claim = await source.claim(namespace, name);
  if (claim === undefined)
    throw problem(`failed to fetch PVC from API server: persistentvolumeclaims "${name}" not found`);
  // A claim that is protected exists as long as pods use it.
  if (claim.metadata?.deletionTimestamp !== undefined && claim.metadata.finalizers?.includes(PROTECTION) !== true)
    throw problem("PVC is being deleted");
  const bound = claim.spec?.volumeName ?? "";
  if (claim.status?.phase !== "Bound") throw problem("PVC is not bound");
  if (bound === "") throw problem("PVC has empty pvc.Spec.VolumeName");
  if (volume.ephemeral !== undefined && !isOwnedBy(claim, pod)) {
    throw new ClaimError(
      `PVC ${namespace}/${name} was not created for pod ${namespace}/${podName(pod)} (pod is not owner)`,
    );
  }
  const found = await source.persistentVolume(bound);
  if (found === undefined)
    throw problem(`failed to fetch PV ${bound} from API server: persistentvolumes "${bound}" not found`);
  const { claimRef } = found.spec ?? {};
  if (claimRef === undefined) {
    const why = "it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim";
    throw problem(`found PV object ${bound} but ${why}`);
  }
  const uid = claim.metadata?.uid ?? "";
  if (claimRef.uid !== uid) {
    const why = `its pv.Spec.ClaimRef.UID ${claimRef.uid ?? ""} does not point to claim.UID ${uid}`;
    throw problem(`found PV object ${bound} but ${why}`);
  }
  validateVolumeMode(pod, volume.name, found);
  return { claim, volume: found };
}

/** Filesystem volumes belong in volumeMounts, block volumes in volumeDevices. */
function validateVolumeMode(pod: Pod, name: string, { spec = {} }: PersistentVolume): void {
  const mode = spec.volumeMode ?? "Filesystem";
  const field = mode === "Block" ? "volumeMounts" : "volumeDevices";
  const isMisused = allContainers(pod).some(({ spec: container }) =>
    (container[field] ?? []).some((each) => each.name === name),
  );
  if (isMisused) throw new ClaimError(`volume ${name} has volumeMode ${mode}, but is specified in ${field}`);
}

/** The path of a local or hostPath volume. Rejects for volumes of other types. */
export async function resolveHostPath({ metadata, spec = {} }: PersistentVolume): Promise<string> {
  if (spec.local !== undefined) {
    const { path } = spec.local;
    const found = await stat(path).catch(() => undefined);
    const isBlock = found?.isBlockDevice() === true;
    if (spec.volumeMode === "Block" && !isBlock) throw new Error(`path "${path}" is not a block device`);
    const fail = (why: string): OperationError =>
      new OperationError("MountVolume.NewMounter initialization", metadata?.name ?? "", "FailedMount", new Error(why));
    if (found === undefined) throw fail(`path ${goQuote(path)} does not exist`);
    if (!isBlock && !found.isDirectory()) throw fail("only directory and block device are supported");
    return path;
  }
  if (spec.hostPath === undefined) {
    const kind = Object.keys(spec).find((key) => !nonSourceFields.has(key)) ?? "(none)";
    throw new Error(`persistent volume "${metadata?.name}" of type ${kind} is not supported by this agent`);
  }
  if (spec.volumeMode === "Block") throw new Error("a hostPath volume cannot be given to containers as a block device");
  // The path must exist to be mounted, so an unset type is DirectoryOrCreate.
  await validateHostPath(spec.hostPath.type ? spec.hostPath : { path: spec.hostPath.path, type: "DirectoryOrCreate" });
  return spec.hostPath.path;
}

/** Fields of a persistent volume's spec that are no volume source. */
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
