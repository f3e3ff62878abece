import { usedVolumes } from "../../agent/volumes/used-volumes.ts";
import type { Pod } from "../../api/core/pod/schema.ts";

/** The pod with mounts, in its first container, of the volumes that no container uses. */
export function mountAll<P extends Pod>(pod: P): P {
  const { containers = [], volumes = [] } = pod.spec ?? {};
  const [first = { name: "main" }, ...others] = containers;
  const used = usedVolumes(pod);
  const unused = volumes.filter((volume) => !used.includes(volume));
  const volumeMounts = [
    ...(first.volumeMounts ?? []),
    ...unused.map(({ name }) => ({ name, mountPath: `/volumes/${name}` })),
  ];
  return { ...pod, spec: { ...pod.spec, containers: [{ ...first, volumeMounts }, ...others] } };
}
