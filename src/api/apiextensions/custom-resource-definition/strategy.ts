import { deepEqual } from "../../../schema/value/equal.ts";
import { runSteps } from "../../../std/async/steps.ts";
import type { Strategy } from "../../kind.ts";
import { keepStatus, setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { setCustomResourceDefinitionDefaults } from "./defaults.ts";
import type { CustomResourceDefinition } from "./schema.ts";
import { markTerminating } from "./status.ts";
import { addStoredVersion } from "./stored-versions.ts";
import { validateDefinition } from "./validation.ts";

export const customResourceDefinitionStrategy: Strategy<CustomResourceDefinition> = {
  setDefaults: setCustomResourceDefinitionDefaults,
  prepareForCreate: ({ status: _, ...object }) => setFirstGeneration(addStoredVersion(object, "always")),
  prepareForUpdate: (next, previous) => {
    const kept = addStoredVersion(keepStatus(next, previous), "always");
    return updateGeneration(kept, previous, !deepEqual(next.spec, previous.spec));
  },
  validate: (object, previous) => runSteps(validateDefinition(object, previous)),
  validateInSteps: validateDefinition,
  prepareForDelete: markTerminating,
  allowUnconditionalUpdate: false,
};
