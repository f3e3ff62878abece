import type { Pod } from "../../api/core/pod/schema.ts";
import type { Volume } from "../../api/core/volume/schema.ts";

/** The name of the claim that a volume of the pod uses; undefined for volumes without one. */
export function claimNameOf(pod: Pod, { name, persistentVolumeClaim, ephemeral }: Volume): string | undefined {
  if (ephemeral !== undefined) return `${pod.metadata?.name ?? ""}-${name}`;
  return persistentVolumeClaim?.claimName;
}

/** The names of all claims that the pod uses. */
export function claimNamesOf(pod: Pod): readonly string[] {
  return (pod.spec?.volumes ?? []).flatMap((volume) => claimNameOf(pod, volume) ?? []);
}
