import type { Strategy } from "../../kind.ts";
import type { Lease } from "./schema.ts";
import { validateLease } from "./validation.ts";

export const leaseStrategy: Strategy<Lease> = {
  validate: validateLease,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: false,
};
