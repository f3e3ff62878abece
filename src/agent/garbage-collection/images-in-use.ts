/** The images that are in use: those of the containers in the runtime, and those that the specs of pods name. */

import { parseImageReference } from "../../api/core/pod-spec/image-reference.ts";
import { allContainers } from "../pods/pod-fields.ts";
import type { Container } from "../runtime/cri/container.ts";
import type { StatsPod } from "../stats/stats-targets.ts";
import type { ImageNames } from "./image-collector.ts";

/** `containers`: all of the runtime, also those of pods that an agent that has just started has not received yet. */
export function listImagesInUse(pods: Iterable<StatsPod>, containers: readonly Container[]): ImageNames {
  const names = new Set<string>();
  for (const { image, imageRef = "", imageId = "" } of containers) {
    for (const name of [image?.image ?? "", imageRef, imageId]) names.add(name);
  }
  for (const { pod, observation } of pods) {
    for (const { image, imageId } of observation.containers) {
      names.add(image);
      names.add(imageId);
    }
    for (const { spec } of allContainers(pod)) addName(names, spec.image ?? "");
    for (const volume of pod.spec?.volumes ?? []) addName(names, volume.image?.reference ?? "");
  }
  names.delete("");
  return names;
}

/** Adds the name with registry and tag, as runtimes list it: `docker.io/library/busybox:latest`. */
function addName(names: Set<string>, image: string): void {
  const reference = parseImageReference(image);
  if ("error" in reference) return;
  const { registry, repository, withTag } = reference;
  names.add(withTag);
  const suffix = /(?:[:@][^/]*)$/.exec(withTag)?.[0] ?? "";
  names.add(`${registry}/${repository}${suffix}`);
}
