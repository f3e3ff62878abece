/** The claims of a pod, and what their names lead to. */
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { getMember } from "../../../schema/value/plain-object.ts";

type Volume = NonNullable<NonNullable<Pod["spec"]>["volumes"]>[number];

interface ClaimName {
  readonly name: string;
  /** The claim is created for the pod, by a controller. */
  readonly isEphemeral: boolean;
}

/** Undefined for a volume without a claim. */
export function claimNameOf(pod: Pod, { name, persistentVolumeClaim, ephemeral }: Volume): ClaimName | undefined {
  if (persistentVolumeClaim !== undefined) return { name: persistentVolumeClaim.claimName, isEphemeral: false };
  return ephemeral && { name: `${pod.metadata?.name ?? ""}-${name}`, isEphemeral: true };
}

export function claimNamesOf(pod: Pod): readonly ClaimName[] {
  return (pod.spec?.volumes ?? []).flatMap((volume) => claimNameOf(pod, volume) ?? []);
}

export function usesClaim(pod: Pod, { metadata }: PersistentVolumeClaim): boolean {
  if (metadata?.namespace !== pod.metadata?.namespace) return false;
  return claimNamesOf(pod).some(({ name }) => name === metadata?.name);
}

/** Whether the claim was created for the pod, which owns it then. */
export function isOwnedByPod(pod: Pod, claim: PersistentVolumeClaim): boolean {
  return (claim.metadata?.ownerReferences ?? []).some(
    ({ controller, uid }) => controller === true && uid === pod.metadata?.uid,
  );
}

export function notOwnedMessage(pod: Pod, claim: PersistentVolumeClaim): string {
  const [namespace, name] = [claim.metadata?.namespace ?? "", claim.metadata?.name ?? ""];
  const podName = pod.metadata?.name ?? "";
  return `PVC ${namespace}/${name} was not created for pod ${namespace}/${podName} (pod is not owner)`;
}

const CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

/** Empty for none. */
export function classOfClaim({ metadata, spec }: PersistentVolumeClaim): string {
  return getMember(metadata?.annotations, CLASS_ANNOTATION) ?? spec?.storageClassName ?? "";
}

export function classOfVolume({ metadata, spec }: PersistentVolume): string {
  return getMember(metadata?.annotations, CLASS_ANNOTATION) ?? spec?.storageClassName ?? "";
}

/** Kubernetes' message for an object that does not exist. */
export function notFound(resource: "persistentvolumeclaim" | "persistentvolume", name: string): string {
  return `${resource} "${name}" not found`;
}

const WAITS = "WaitForFirstConsumer";

export function waitsForConsumer(mode: string | undefined): boolean {
  return mode === WAITS;
}
