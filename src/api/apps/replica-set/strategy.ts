import type { Strategy } from "../../kind.ts";
import { validateImmutableSelector } from "../../meta/validation/immutable.ts";
import { controllerWarnings, createPrepareForUpdate, prepareForCreate } from "../workload/strategy.ts";
import { setReplicaSetDefaults } from "./defaults.ts";
import { type ReplicaSet, replicaSetSpec } from "./schema.ts";
import { validateReplicaSetSpec } from "./validation.ts";

export const replicaSetStrategy: Strategy<ReplicaSet> = {
  setDefaults: setReplicaSetDefaults,
  prepareForCreate,
  prepareForUpdate: createPrepareForUpdate(replicaSetSpec),
  validate: (object, previous) =>
    object.spec === undefined ? [] : validateReplicaSetSpec(object.spec, previous?.spec),
  validateUpdate: (next, previous) => validateImmutableSelector(next.spec?.selector, previous.spec?.selector),
  warnings: controllerWarnings,
};
