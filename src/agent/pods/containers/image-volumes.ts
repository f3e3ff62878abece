/** Images mounted as volumes: the agent pulls them like containers' images, and the runtime mounts them. */
import type { Container, VolumeMount } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { ImageVolumeSource } from "../../../api/core/volume/schema.ts";
import type { Mount } from "../../runtime/cri/shared.ts";
import type { PodContext } from "../pod-context.ts";
import type { PlannedStart } from "../worker/plan.ts";

/** Rejects with an `ImageError`, as for the container's own image. */
export async function pullImageVolumes(pod: PodContext, { spec, role }: PlannedStart): Promise<void> {
  const { images } = pod.services;
  for (const { reference = "", pullPolicy } of findMountedImages(pod.pod, spec)) {
    const { imagePullPolicy: _, ...container } = spec;
    const policy = pullPolicy === undefined ? {} : { imagePullPolicy: pullPolicy };
    const imageContainer = { ...container, image: reference, ...policy };
    const { ref } = await images.ensureImage(pod.pod, imageContainer, role, pod.signal);
    pod.memory.imageRefs.set(reference, ref);
  }
}

/** Images are always mounted read-only. */
export function makeImageMount(
  { memory }: Pick<PodContext, "memory">,
  { reference = "" }: ImageVolumeSource,
  { mountPath }: VolumeMount,
  subPath: string,
): Mount {
  return {
    containerPath: mountPath.startsWith("/") ? mountPath : `/${mountPath}`,
    readonly: true,
    image: { image: memory.imageRefs.get(reference) ?? reference, userSpecifiedImage: reference },
    ...(subPath === "" ? {} : { imageSubPath: subPath }),
  };
}

function findMountedImages({ spec }: Pod, { volumeMounts = [] }: Container): readonly ImageVolumeSource[] {
  const mounted = new Set(volumeMounts.map(({ name }) => name));
  return (spec?.volumes ?? []).flatMap(({ name, image }) => (image !== undefined && mounted.has(name) ? [image] : []));
}
