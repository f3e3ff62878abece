import { deepEqual } from "../../../schema/value/equal.ts";
import type { Strategy } from "../../kind.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { setMatchDefaults } from "../validating-admission-policy/defaults.ts";
import type { MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding } from "./schema.ts";
import { validateMutatingPolicy, validateMutatingPolicyBinding } from "./validation.ts";

export const mutatingAdmissionPolicyStrategy: Strategy<MutatingAdmissionPolicy> = {
  setDefaults: (object) => {
    const { matchConstraints, failurePolicy = "Fail" } = object.spec ?? {};
    const match = matchConstraints === undefined ? {} : { matchConstraints: setMatchDefaults(matchConstraints) };
    return { ...object, spec: { ...object.spec, failurePolicy, ...match } };
  },
  prepareForCreate: setFirstGeneration,
  prepareForUpdate: (next, previous) => updateGeneration(next, previous, !deepEqual(next.spec, previous.spec)),
  validateInSteps: validateMutatingPolicy,
  allowUnconditionalUpdate: false,
};

export const mutatingAdmissionPolicyBindingStrategy: Strategy<MutatingAdmissionPolicyBinding> = {
  setDefaults: (object) => {
    const { matchResources, paramRef } = object.spec ?? {};
    const match = matchResources === undefined ? {} : { matchResources: setMatchDefaults(matchResources) };
    const params =
      paramRef === undefined ? {} : { paramRef: { parameterNotFoundAction: "Deny" as const, ...paramRef } };
    return { ...object, spec: { ...object.spec, ...match, ...params } };
  },
  prepareForCreate: setFirstGeneration,
  prepareForUpdate: (next, previous) => updateGeneration(next, previous, !deepEqual(next.spec, previous.spec)),
  validate: validateMutatingPolicyBinding,
  allowUnconditionalUpdate: false,
};
