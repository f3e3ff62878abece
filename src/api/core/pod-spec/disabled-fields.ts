/**
 * What a pod cannot ask for because 1.33 leaves it switched off by default: it is taken out of the spec in silence, as
 * if the client had sent an unknown field. Gates: PodLevelResources, DynamicResourceAllocation, ImageVolume,
 * ClusterTrustBundleProjection, ContainerStopSignals.
 */
import type { Container, EphemeralContainer } from "../container/schema.ts";
import type { Volume } from "../volume/schema.ts";
import type { PodSpec } from "./schema.ts";

export function dropDisabledFields(spec: PodSpec): PodSpec {
  const { resources: _, resourceClaims: __, ...kept } = spec;
  const images = new Set((spec.volumes ?? []).filter(({ image }) => image !== undefined).map(({ name }) => name));
  const clean = <C extends Container | EphemeralContainer>(containers: readonly C[]): readonly C[] =>
    containers.map((container) => dropContainerFields(container, images));
  return {
    ...kept,
    containers: clean(spec.containers ?? []),
    ...(spec.initContainers === undefined ? {} : { initContainers: clean(spec.initContainers) }),
    ...(spec.ephemeralContainers === undefined ? {} : { ephemeralContainers: clean(spec.ephemeralContainers) }),
    ...(spec.volumes === undefined ? {} : { volumes: dropVolumeFields(spec.volumes) }),
  };
}

function dropContainerFields<C extends Container | EphemeralContainer>(container: C, images: ReadonlySet<string>): C {
  let result = container;
  if (container.resources?.claims !== undefined) {
    const { claims: _, ...resources } = container.resources;
    result = { ...result, resources };
  }
  if (container.lifecycle?.stopSignal !== undefined) {
    const { stopSignal: _, ...hooks } = container.lifecycle;
    const { lifecycle: __, ...rest } = result;
    result = (Object.keys(hooks).length === 0 ? rest : { ...rest, lifecycle: hooks }) as C;
  }
  if (images.size > 0 && container.volumeMounts !== undefined) {
    result = { ...result, volumeMounts: container.volumeMounts.filter(({ name }) => !images.has(name)) };
  }
  return result;
}

function dropVolumeFields(volumes: readonly Volume[]): readonly Volume[] {
  return volumes.flatMap((volume) => {
    if (volume.image !== undefined) return [];
    const { projected } = volume;
    if (projected?.sources?.some(({ clusterTrustBundle }) => clusterTrustBundle !== undefined) !== true) {
      return [volume];
    }
    // The place in the list stays, empty.
    const sources = projected.sources.map(({ clusterTrustBundle: _, ...source }) => source);
    return [{ ...volume, projected: { ...projected, sources } }];
  });
}
