/** Features of the Pod API that the agent does not support. It reports them instead of ignoring them. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import { hasPodLevelResources } from "../../../api/core/pod-spec/resources.ts";
import { findUnsupportedSource } from "../../volumes/volume-manager.ts";
import type { PodServices } from "../pod-context.ts";
import { allContainers } from "../pod-fields.ts";

interface AgentFeatures {
  readonly settings: Pick<
    PodServices["settings"],
    "imageVolumes" | "podLevelResources" | "resourceClaims" | "stopSignals"
  >;
}

/** A phrase for "the pod needs …"; undefined when the agent supports all features of the pod. */
export function findUnsupportedFeature(pod: Pod, { settings }: AgentFeatures): string | undefined {
  const { spec } = pod;
  const { imageVolumes, podLevelResources, resourceClaims, stopSignals } = settings;
  for (const volume of spec?.volumes ?? []) {
    const source = findUnsupportedSource(volume, imageVolumes);
    if (source !== undefined) return `volume "${volume.name}" of type ${source}`;
  }
  if (resourceClaims !== true && (spec?.resourceClaims ?? []).length > 0) return "resource claims";
  if (podLevelResources !== true && hasPodLevelResources(spec)) {
    return "resources of the pod as a whole (feature gate PodLevelResources)";
  }
  return stopSignals === true ? undefined : findUnsupportedContainerFeature(pod);
}

function findUnsupportedContainerFeature(pod: Pod): string | undefined {
  for (const { spec } of allContainers(pod)) {
    const of = `of container "${spec.name}"`;
    if (spec.lifecycle?.stopSignal !== undefined) return `stopSignal ${of} (feature gate ContainerStopSignals)`;
  }
  return undefined;
}
