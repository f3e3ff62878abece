/** AlwaysPullImages: sets imagePullPolicy Always for new images, so that a pod only runs images that it may pull. */

import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { containersWithPaths } from "../../../api/core/pod-spec/containers.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { type FieldError, notSupported, renderFieldError } from "../../../schema/validation/field-error.ts";
import { type AdmissionRequest, matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

const ALWAYS = "Always";

export function alwaysPullImages(): AdmissionPlugin {
  return {
    name: "AlwaysPullImages",
    handles: (attributes) => matchesResource(attributes, podKind, ["CREATE", "UPDATE"]),
    mutate(request) {
      const pod = request.object as Pod;
      if (pod.spec === undefined || !hasNewImages(request)) return undefined;
      return { ...pod, spec: setPullPolicy(pod.spec) } as Pod;
    },
    validate(request) {
      const { spec } = request.object as Pod;
      if (spec === undefined || !hasNewImages(request)) return;
      const [error] = validatePullPolicy(spec);
      if (error !== undefined) throw newForbidden(request, `${error.field}: ${renderFieldError(error)}`);
    },
  };
}

/** Images that were admitted before keep their pull policy. */
function hasNewImages({ operation, object, oldObject }: AdmissionRequest): boolean {
  if (operation === "CREATE") return true;
  const imagesOf = ({ spec }: Pod): readonly string[] =>
    spec === undefined ? [] : [...containersWithPaths(spec, "")].map(({ container }) => container.image ?? "");
  const oldImages = new Set(imagesOf(oldObject as Pod));
  return imagesOf(object as Pod).some((image) => !oldImages.has(image));
}

function setPullPolicy(spec: PodSpec): PodSpec {
  const withPolicy = <T extends object>(containers: readonly T[]): readonly T[] =>
    containers.map((container) => ({ ...container, imagePullPolicy: ALWAYS }));
  const { containers, initContainers, ephemeralContainers, volumes } = spec;
  return {
    ...spec,
    containers: withPolicy(containers),
    ...(initContainers === undefined ? {} : { initContainers: withPolicy(initContainers) }),
    ...(ephemeralContainers === undefined ? {} : { ephemeralContainers: withPolicy(ephemeralContainers) }),
    ...(volumes === undefined
      ? {}
      : {
          volumes: volumes.map((volume) =>
            volume.image === undefined ? volume : { ...volume, image: { ...volume.image, pullPolicy: ALWAYS } },
          ),
        }),
  };
}

function validatePullPolicy(spec: PodSpec): readonly FieldError[] {
  const volumes = (spec.volumes ?? []).flatMap(({ image }, index) =>
    image === undefined || image.pullPolicy === ALWAYS
      ? []
      : [notSupported(`spec.volumes[${index}].image.pullPolicy`, image.pullPolicy ?? "", [ALWAYS])],
  );
  const containers = [...containersWithPaths(spec, "spec")]
    .filter(({ container }) => container.imagePullPolicy !== ALWAYS)
    .map(({ container, at }) => notSupported(`${at}.imagePullPolicy`, container.imagePullPolicy ?? "", [ALWAYS]));
  return [...containers, ...volumes];
}
