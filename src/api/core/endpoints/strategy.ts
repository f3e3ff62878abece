import type { Strategy } from "../../kind.ts";
import { setEndpointsDefaults } from "./defaults.ts";
import type { Endpoints } from "./schema.ts";
import { endpointsWarnings, validateEndpoints } from "./validation.ts";

export const endpointsStrategy: Strategy<Endpoints> = {
  setDefaults: setEndpointsDefaults,
  validate: validateEndpoints,
  warnings: endpointsWarnings,
  allowCreateOnUpdate: true,
};
