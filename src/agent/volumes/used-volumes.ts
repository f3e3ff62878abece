import type { Pod } from "../../api/core/pod/schema.ts";
import type { Volume } from "../../api/core/volume/schema.ts";
import { allContainers } from "../pods/pod-fields.ts";

/** The volumes that containers of the pod mount or have as devices. As in Kubernetes, the others are not set up. */
export function usedVolumes(pod: Pod): readonly Volume[] {
  const used = new Set(
    allContainers(pod).flatMap(({ spec: { volumeMounts = [], volumeDevices = [] } }) =>
      [...volumeMounts, ...volumeDevices].map(({ name }) => name),
    ),
  );
  return (pod.spec?.volumes ?? []).filter(({ name }) => used.has(name));
}
