/** Nobody runs an image that lies on a node without having the right to pull it. */

import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { containersWithPaths } from "../../../api/core/pod-spec/containers.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { type FieldError, notSupported, renderFieldError } from "../../../schema/validation/field-error.ts";
import { matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin, AdmissionRequest } from "../../chain/plugin.ts";

const ALWAYS = "Always";

export function alwaysPullImages(): AdmissionPlugin {
  return {
    name: "AlwaysPullImages",
    handles: (attributes) => matchesResource(attributes, podKind, ["CREATE", "UPDATE"]),
    mutate(request) {
      const pod = request.object as Pod;
      if (pod.spec === undefined || !hasNewImages(request)) return undefined;
      return { ...pod, spec: alwaysPulled(pod.spec) } as Pod;
    },
    validate(request) {
      const { spec } = request.object as Pod;
      if (spec === undefined || !hasNewImages(request)) return;
      const [error] = otherwisePulled(spec);
      if (error !== undefined) throw newForbidden(request, `${error.field}: ${renderFieldError(error)}`);
    },
  };
}

/** What was admitted before stays as it was. */
function hasNewImages({ operation, object, oldObject }: AdmissionRequest): boolean {
  if (operation === "CREATE") return true;
  const imagesOf = ({ spec }: Pod): readonly string[] =>
    spec === undefined ? [] : containersWithPaths(spec, "").map(({ container }) => container.image ?? "");
  const known = new Set(imagesOf(oldObject as Pod));
  return imagesOf(object as Pod).some((image) => !known.has(image));
}

function alwaysPulled(spec: PodSpec): PodSpec {
  const pulled = <T extends object>(containers: readonly T[]): readonly T[] =>
    containers.map((container) => ({ ...container, imagePullPolicy: ALWAYS }));
  const { containers, initContainers, ephemeralContainers, volumes } = spec;
  return {
    ...spec,
    containers: pulled(containers),
    ...(initContainers === undefined ? {} : { initContainers: pulled(initContainers) }),
    ...(ephemeralContainers === undefined ? {} : { ephemeralContainers: pulled(ephemeralContainers) }),
    ...(volumes === undefined
      ? {}
      : {
          volumes: volumes.map((volume) =>
            volume.image === undefined ? volume : { ...volume, image: { ...volume.image, pullPolicy: ALWAYS } },
          ),
        }),
  };
}

function otherwisePulled(spec: PodSpec): readonly FieldError[] {
  const volumes = (spec.volumes ?? []).flatMap(({ image }, index) =>
    image === undefined || image.pullPolicy === ALWAYS
      ? []
      : [notSupported(`spec.volumes[${index}].image.pullPolicy`, image.pullPolicy ?? "", [ALWAYS])],
  );
  const containers = containersWithPaths(spec, "spec")
    .filter(({ container }) => container.imagePullPolicy !== ALWAYS)
    .map(({ container, at }) => notSupported(`${at}.imagePullPolicy`, container.imagePullPolicy ?? "", [ALWAYS]));
  return [...containers, ...volumes];
}
