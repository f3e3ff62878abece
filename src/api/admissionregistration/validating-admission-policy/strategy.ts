import { deepEqual } from "../../../schema/value/equal.ts";
import type { Strategy } from "../../kind.ts";
import { dropStatus, keepStatus, setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { setMatchDefaults } from "./defaults.ts";
import type { ValidatingAdmissionPolicy } from "./schema.ts";
import { validatePolicy } from "./validation.ts";

export const validatingAdmissionPolicyStrategy: Strategy<ValidatingAdmissionPolicy> = {
  setDefaults: (object) => {
    const { matchConstraints, failurePolicy = "Fail" } = object.spec ?? {};
    const match = matchConstraints === undefined ? {} : { matchConstraints: setMatchDefaults(matchConstraints) };
    return { ...object, spec: { ...object.spec, failurePolicy, ...match } };
  },
  prepareForCreate: (object) => setFirstGeneration(dropStatus(object)),
  prepareForUpdate: (next, previous) =>
    updateGeneration(keepStatus(next, previous), previous, !deepEqual(next.spec, previous.spec)),
  validateInSteps: validatePolicy,
  allowUnconditionalUpdate: false,
};
