import type { Strategy } from "../../kind.ts";
import { dropStatus, keepStatus } from "../../strategy.ts";
import { setAPIServiceDefaults } from "./defaults.ts";
import type { APIService } from "./schema.ts";
import { validateApiService } from "./validation.ts";

/** A local API service is available at once. */
function prepareForCreate(object: APIService, now: string): APIService {
  const fresh = dropStatus(object);
  if (object.spec?.service !== undefined) return fresh;
  const available = {
    type: "Available",
    status: "True",
    lastTransitionTime: now,
    reason: "Local",
    message: "Local APIServices are always available",
  };
  return { ...fresh, status: { conditions: [available] } };
}

export const apiServiceStrategy: Strategy<APIService> = {
  allowUnconditionalUpdate: false,
  setDefaults: setAPIServiceDefaults,
  prepareForCreate,
  prepareForUpdate: keepStatus,
  validate: validateApiService,
};
