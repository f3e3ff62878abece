import type { Strategy } from "../../kind.ts";
import type { Lease } from "./schema.ts";
import { validateLease } from "./validation.ts";

/** Drops the fields of CoordinatedLeaderElection, which is off by default in 1.33. */
function dropDisabledFields(object: Lease): Lease {
  if (object.spec === undefined) return object;
  const { strategy: _, preferredHolder: __, ...spec } = object.spec;
  return { ...object, spec };
}

export const leaseStrategy: Strategy<Lease> = {
  prepareForCreate: dropDisabledFields,
  prepareForUpdate: dropDisabledFields,
  validate: validateLease,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: false,
};
