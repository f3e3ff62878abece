import { deepEqual } from "../../../schema/value/equal.ts";
import type { Strategy } from "../../kind.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { setMatchDefaults } from "../validating-admission-policy/defaults.ts";
import type { ValidatingAdmissionPolicyBinding } from "../validating-admission-policy/schema.ts";
import { validateValidatingAdmissionPolicyBinding } from "./validation.ts";

export const validatingAdmissionPolicyBindingStrategy: Strategy<ValidatingAdmissionPolicyBinding> = {
  setDefaults: (object) => {
    const { matchResources } = object.spec ?? {};
    if (matchResources === undefined) return object;
    return { ...object, spec: { ...object.spec, matchResources: setMatchDefaults(matchResources) } };
  },
  prepareForCreate: setFirstGeneration,
  prepareForUpdate: (next, previous) => updateGeneration(next, previous, !deepEqual(next.spec, previous.spec)),
  validate: validateValidatingAdmissionPolicyBinding,
  allowUnconditionalUpdate: false,
};
