/** The `ephemeralcontainers` subresource: adds ephemeral containers, which cannot be changed or removed. */
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { type FieldError, forbiddenField, validateEach } from "../../../schema/validation/field-error.ts";
import type { SubresourceStrategy } from "../../kind.ts";
import { ephemeralContainer } from "../container/schema.ts";
import { MIRROR } from "../pod-spec/annotation-validation.ts";
import { validationOptionsFrom } from "../pod-spec/validation-options.ts";
import { updatePodGeneration } from "./generation.ts";
import { subresourceMetadata } from "./resize.ts";
import type { Pod } from "./schema.ts";
import { validateAnnotationUpdate } from "./update-validation.ts";
import { validatePod } from "./validation.ts";

export const podEphemeralContainersStrategy: SubresourceStrategy<Pod> = {
  prepareForUpdate: (next, previous) => {
    const { ephemeralContainers: _, ...spec } = previous.spec ?? { containers: [] };
    const added = next.spec?.ephemeralContainers;
    const kept = {
      ...previous,
      metadata: subresourceMetadata(next, previous),
      spec: added === undefined ? spec : { ...spec, ephemeralContainers: added },
    };
    return updatePodGeneration(kept, previous);
  },
  validateUpdate: (next, previous) => [
    ...validatePod(next, validationOptionsFrom(previous)),
    ...validateAnnotationUpdate(next.metadata, previous.metadata),
    ...validateExistingContainers(next, previous),
  ],
};

function validateExistingContainers(next: Pod, previous: Pod): readonly FieldError[] {
  if (previous.metadata?.annotations?.[MIRROR] !== undefined) {
    return [forbiddenField("", "static pods do not support ephemeral containers")];
  }
  const path = "spec.ephemeralContainers";
  // Of containers with the same name the first counts.
  const byName = new Map((next.spec?.ephemeralContainers ?? []).toReversed().map((one) => [one.name, one]));
  return validateEach(previous.spec?.ephemeralContainers ?? [], (old) => {
    const now = byName.get(old.name);
    const which = `existing ephemeral containers ${JSON.stringify(old.name)} may not be`;
    if (now === undefined) return [forbiddenField(path, `${which} removed\n`)];
    return semanticEqual(ephemeralContainer, now, old) ? [] : [forbiddenField(path, `${which} changed`)];
  });
}
