/** Images that garbage collection must keep: they could not be pulled again while the registry is unreachable. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { allContainers } from "../pods/pod-fields.ts";

/** References in the pods' specs, including image volumes. */
export function findNeededImages(pods: Iterable<Pod>): ReadonlySet<string> {
  const names = new Set<string>();
  for (const pod of pods) {
    for (const { spec } of allContainers(pod)) if (spec.image) names.add(spec.image);
    for (const { image } of pod.spec?.volumes ?? []) if (image?.reference) names.add(image.reference);
  }
  return names;
}
