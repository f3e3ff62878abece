import type { Strategy } from "../../kind.ts";
import { dropStatus, keepStatus } from "../../strategy.ts";
import type { ServiceCIDR } from "./schema.ts";
import { validateCidrs, validateServiceCIDRUpdate } from "./validation.ts";

export const serviceCIDRStrategy: Strategy<ServiceCIDR> = {
  prepareForCreate: dropStatus,
  prepareForUpdate: keepStatus,
  validate: (object, previous) => (previous === undefined ? validateCidrs(object.spec?.cidrs ?? []) : []),
  validateUpdate: validateServiceCIDRUpdate,
};
