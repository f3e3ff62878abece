/**
 * Drops the fields of features that are off by default in 1.33, silently like unknown fields. Gates: PodLevelResources,
 * DynamicResourceAllocation, ImageVolume, ClusterTrustBundleProjection, ContainerStopSignals.
 */
import type { Container, EphemeralContainer } from "../container/schema.ts";
import type { Volume } from "../volume/schema.ts";
import type { PodSpec } from "./schema.ts";

export function dropDisabledFields(spec: PodSpec): PodSpec {
  const { resources: _, resourceClaims: __, ...kept } = spec;
  const images = new Set((spec.volumes ?? []).filter(({ image }) => image !== undefined).map(({ name }) => name));
  const dropFields = <C extends Container | EphemeralContainer>(containers: readonly C[]): readonly C[] =>
    containers.map((container) => dropContainerFields(container, images));
  return {
    ...kept,
    containers: dropFields(spec.containers ?? []),
    ...(spec.initContainers === undefined ? {} : { initContainers: dropFields(spec.initContainers) }),
    ...(spec.ephemeralContainers === undefined ? {} : { ephemeralContainers: dropFields(spec.ephemeralContainers) }),
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
    // The source stays in the list without its fields.
    const sources = projected.sources.map(({ clusterTrustBundle: _, ...source }) => source);
    return [{ ...volume, projected: { ...projected, sources } }];
  });
}
