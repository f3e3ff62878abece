import { deepEqual } from "../../../schema/value/equal.ts";
import type { Strategy } from "../../kind.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { setNetworkPolicyDefaults } from "./defaults.ts";
import type { NetworkPolicy } from "./schema.ts";
import { networkPolicyWarnings, validateNetworkPolicy } from "./validation.ts";

export const networkPolicyStrategy: Strategy<NetworkPolicy> = {
  setDefaults: setNetworkPolicyDefaults,
  prepareForCreate: setFirstGeneration,
  prepareForUpdate: (next, previous) => updateGeneration(next, previous, !deepEqual(next.spec, previous.spec)),
  validate: validateNetworkPolicy,
  warnings: networkPolicyWarnings,
};
