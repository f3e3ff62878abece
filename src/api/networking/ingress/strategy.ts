import { deepEqual } from "../../../schema/value/equal.ts";
import type { Strategy } from "../../kind.ts";
import { dropStatus, keepStatus, setFirstGeneration, updateGeneration } from "../../strategy.ts";
import type { Ingress } from "./schema.ts";
import { ingressWarnings, validateIngress } from "./validation.ts";

export const ingressStrategy: Strategy<Ingress> = {
  prepareForCreate: (object) => setFirstGeneration(dropStatus(object)),
  prepareForUpdate: (next, previous) =>
    updateGeneration(keepStatus(next, previous), previous, !deepEqual(next.spec, previous.spec)),
  validate: validateIngress,
  warnings: ingressWarnings,
};
