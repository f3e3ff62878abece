/** Volumes of images, which a write drops together with their mounts. */

interface Container {
  readonly volumeMounts?: readonly { readonly name: string }[] | undefined;
}

interface PodSpec {
  readonly volumes?: readonly { readonly name: string; readonly image?: unknown }[] | undefined;
  readonly containers?: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly ephemeralContainers?: readonly Container[];
}

export function hasImageVolume(spec: unknown): boolean {
  return (spec as PodSpec | undefined)?.volumes?.some(({ image }) => image !== undefined) ?? false;
}

export function dropImageVolumes(value: unknown): unknown {
  if (!hasImageVolume(value)) return value;
  const spec = value as PodSpec;
  const images = new Set((spec.volumes ?? []).filter(({ image }) => image !== undefined).map(({ name }) => name));
  const withoutMounts = (containers: readonly Container[]): readonly Container[] =>
    containers.map((container) =>
      container.volumeMounts === undefined
        ? container
        : { ...container, volumeMounts: container.volumeMounts.filter(({ name }) => !images.has(name)) },
    );
  const lists = ["containers", "initContainers", "ephemeralContainers"] as const;
  const changed = lists.flatMap((list) => {
    const containers = spec[list];
    return containers === undefined ? [] : [[list, withoutMounts(containers)] as const];
  });
  return {
    ...spec,
    ...Object.fromEntries(changed),
    volumes: (spec.volumes ?? []).filter(({ image }) => image === undefined),
  };
}
