import { deepEqual } from "../../../schema/value/equal.ts";
import type { Strategy } from "../../kind.ts";
import { dropStatus, keepStatus, setFirstGeneration, updateGeneration } from "../../strategy.ts";
import type { FlowSchema } from "./schema.ts";
import { emptySpec, validateFlowSchema } from "./validation.ts";

const PRECEDENCE = 1000;

export const flowSchemaStrategy: Strategy<FlowSchema> = {
  setDefaults: ({ spec = emptySpec, ...object }) => ({
    ...object,
    spec: { ...spec, matchingPrecedence: spec.matchingPrecedence || PRECEDENCE },
  }),
  prepareForCreate: (object) => setFirstGeneration(dropStatus(object)),
  prepareForUpdate: (next, previous) =>
    updateGeneration(keepStatus(next, previous), previous, !deepEqual(next.spec, previous.spec)),
  validate: validateFlowSchema,
};
