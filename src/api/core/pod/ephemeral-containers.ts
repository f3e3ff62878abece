/** The `ephemeralcontainers` subresource: adds ephemeral containers, which cannot be changed or removed. */
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { type FieldError, forbiddenField, validateEach } from "../../../schema/validation/field-error.ts";
import { formatGoDiff } from "../../../schema/validation/go-diff.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import type { SubresourceStrategy } from "../../kind.ts";
import { ephemeralContainer } from "../container/schema.ts";
import { MIRROR, validatePodAnnotations } from "../pod-spec/annotation-validation.ts";
import type { PodSpec } from "../pod-spec/schema.ts";
import { validationOptionsFrom } from "../pod-spec/validation-options.ts";
import { updatePodGeneration } from "./generation.ts";
import { subresourceMetadata } from "./resize.ts";
import type { Pod } from "./schema.ts";
import { validateAnnotationUpdate } from "./update-validation.ts";
import { validatePod } from "./validation.ts";

const NO_SPEC: PodSpec = { containers: [] };

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
  validateUpdate,
};

function validateUpdate(next: Pod, previous: Pod): readonly FieldError[] {
  // Alone, whatever else is invalid.
  if (previous.metadata?.annotations?.[MIRROR] !== undefined) {
    return [forbiddenField("", "static pods do not support ephemeral containers")];
  }
  const options = validationOptionsFrom(previous);
  return [
    ...validatePod(next, options),
    ...validateAnnotationUpdate(next.metadata, previous.metadata),
    // An update reports these a second time.
    ...validatePodAnnotations(next.metadata ?? {}, next.spec ?? NO_SPEC, "metadata.annotations", options),
    ...validateExistingContainers(next, previous),
  ];
}

function validateExistingContainers(next: Pod, previous: Pod): readonly FieldError[] {
  const path = "spec.ephemeralContainers";
  // Of containers with the same name the last counts.
  const byName = new Map((next.spec?.ephemeralContainers ?? []).map((one) => [one.name, one]));
  return validateEach(previous.spec?.ephemeralContainers ?? [], (old) => {
    const now = byName.get(old.name);
    const which = `existing ephemeral containers ${goQuote(old.name)} may not be`;
    if (now === undefined) return [forbiddenField(path, `${which} removed\n`)];
    if (semanticEqual(ephemeralContainer, now, old)) return [];
    const difference = formatGoDiff(ephemeralContainer, "core.EphemeralContainer", old, now);
    return [forbiddenField(path, `${which} changed\n${difference}`)];
  });
}
