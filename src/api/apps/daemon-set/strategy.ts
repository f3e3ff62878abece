import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { podTemplateSpec } from "../../core/pod-template/schema.ts";
import type { Strategy } from "../../kind.ts";
import { validateImmutableSelector } from "../../meta/validation/immutable.ts";
import { createPrepareForUpdate, prepareForCreate, templateWarnings } from "../workload/strategy.ts";
import { setDaemonSetDefaults } from "./defaults.ts";
import { type DaemonSet, daemonSetSpec } from "./schema.ts";
import { validateDaemonSetSpec } from "./validation.ts";

/** Counts the templates; was a field of the spec before apps/v1. */
const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";

function templateGeneration(object: DaemonSet): number {
  return Math.trunc(Number(object.metadata?.annotations?.[TEMPLATE_GENERATION] ?? 0)) || 0;
}

function setTemplateGeneration(object: DaemonSet, generation: number): DaemonSet {
  const annotations = { ...object.metadata?.annotations, [TEMPLATE_GENERATION]: String(generation) };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

const countChanges = createPrepareForUpdate<DaemonSet>(daemonSetSpec);

/** Clients cannot change the template generation. */
function prepareForUpdate(next: DaemonSet, previous: DaemonSet): DaemonSet {
  const changed = !semanticEqual(podTemplateSpec, next.spec?.template, previous.spec?.template);
  const generation = templateGeneration(previous) + (changed ? 1 : 0);
  return setTemplateGeneration(countChanges(next, previous), generation);
}

export const daemonSetStrategy: Strategy<DaemonSet> = {
  // Sets the annotation in defaulting, so that the writer manages it, whether the client sent it or not.
  setDefaults: (object) => setTemplateGeneration(setDaemonSetDefaults(object), templateGeneration(object)),
  prepareForCreate: (object) =>
    setTemplateGeneration(prepareForCreate(object), Math.max(1, templateGeneration(object))),
  prepareForUpdate: prepareForUpdate,
  validate: (object, previous) => (object.spec === undefined ? [] : validateDaemonSetSpec(object.spec, previous?.spec)),
  validateUpdate: (next, previous) => validateImmutableSelector(next.spec?.selector, previous.spec?.selector),
  warnings: (object, previous) => templateWarnings(object, previous, object.spec?.template, "spec.template"),
};
