import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import type { Strategy } from "../../kind.ts";
import { validateImmutableSelector } from "../../meta/validation/immutable.ts";
import { keepStatus, replaceStatus, updateGeneration } from "../../strategy.ts";
import { controllerWarnings, prepareForCreate } from "../workload/strategy.ts";
import { setDeploymentDefaults } from "./defaults.ts";
import { type Deployment, deploymentSpec } from "./schema.ts";
import { validateDeploymentSpec } from "./validation.ts";

/** Changes of annotations increment the generation as well: `kubectl rollout` stores data in them. */
export function prepareForUpdate(next: Deployment, previous: Deployment): Deployment {
  const same =
    semanticEqual(deploymentSpec, next.spec, previous.spec) &&
    deepEqual(next.metadata?.annotations, previous.metadata?.annotations);
  return updateGeneration(keepStatus(next, previous), previous, !same);
}

export function prepareForStatusUpdate(next: Deployment, previous: Deployment): Deployment {
  const { labels: _, ...metadata } = next.metadata ?? {};
  const labels = previous.metadata?.labels;
  const kept: Deployment = { ...next, metadata: labels === undefined ? metadata : { ...metadata, labels } };
  return replaceStatus(kept, previous);
}

export const deploymentStrategy: Strategy<Deployment> = {
  setDefaults: setDeploymentDefaults,
  prepareForCreate,
  prepareForUpdate,
  validate: (object, previous) =>
    object.spec === undefined ? [] : validateDeploymentSpec(object.spec, previous?.spec),
  validateUpdate: (next, previous) => validateImmutableSelector(next.spec?.selector, previous.spec?.selector),
  warnings: controllerWarnings,
};
