import { controllerWarnings, createPrepareForUpdate, prepareForCreate } from "../../apps/workload/strategy.ts";
import type { Strategy } from "../../kind.ts";
import { setReplicationControllerDefaults } from "./defaults.ts";
import { type ReplicationController, replicationControllerSpec } from "./schema.ts";
import { validateReplicationControllerSpec } from "./validation.ts";

export const replicationControllerStrategy: Strategy<ReplicationController> = {
  setDefaults: setReplicationControllerDefaults,
  prepareForCreate,
  prepareForUpdate: createPrepareForUpdate(replicationControllerSpec),
  validate: (object, previous) =>
    object.spec === undefined ? [] : validateReplicationControllerSpec(object.spec, previous?.spec),
  warnings: controllerWarnings,
  orphansDependentsByDefault: true,
};
