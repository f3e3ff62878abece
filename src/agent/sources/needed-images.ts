/** Images that nobody may collect as garbage: with the registry or the API server away they could not be had again. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { allContainers } from "../pods/pod-fields.ts";

/** As the pods name them, those of image volumes included. */
export function findNeededImages(pods: Iterable<Pod>): ReadonlySet<string> {
  const names = new Set<string>();
  for (const pod of pods) {
    for (const { spec } of allContainers(pod)) if (spec.image) names.add(spec.image);
    for (const { image } of pod.spec?.volumes ?? []) if (image?.reference) names.add(image.reference);
  }
  return names;
}
