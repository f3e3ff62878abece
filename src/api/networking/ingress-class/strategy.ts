import { invalidField } from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import type { Strategy } from "../../kind.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { setIngressClassDefaults } from "./defaults.ts";
import type { IngressClass } from "./schema.ts";
import { CONTROLLER, validateIngressClass } from "./validation.ts";

export const ingressClassStrategy: Strategy<IngressClass> = {
  setDefaults: setIngressClassDefaults,
  prepareForCreate: setFirstGeneration,
  prepareForUpdate: (next, previous) => updateGeneration(next, previous, !deepEqual(next.spec, previous.spec)),
  validate: validateIngressClass,
  validateUpdate: (next, previous) => {
    const { controller = "" } = next.spec ?? {};
    const same = controller === (previous.spec?.controller ?? "");
    return same ? [] : [invalidField(CONTROLLER, controller, "field is immutable")];
  },
};
