/** The effect of each flag of `svc agent`. */
import type { AgentFlagName } from "../../../testing/agent/flag-harness.ts";
import { apiClientEffects } from "./api-client-effects.ts";
import { authenticationEffects } from "./authentication-effects.ts";
import { evictionEffects } from "./eviction-effects.ts";
import { networkingEffects } from "./networking-effects.ts";
import { podSourcesEffects } from "./pod-sources-effects.ts";
import { registrationEffects } from "./registration-effects.ts";
import { resourceManagersEffects } from "./resource-managers-effects.ts";
import { resourcesEffects } from "./resources-effects.ts";
import { runtimeEffects } from "./runtime-effects.ts";
import { servingEffects } from "./serving-effects.ts";
import type { Effect } from "./support.ts";

/** Shown by a running agent, with the flag and with the field of the configuration file. */
export const agentEffects: Partial<Record<AgentFlagName, Effect>> = {
  ...podSourcesEffects,
  ...registrationEffects,
  ...runtimeEffects,
  ...servingEffects,
  ...authenticationEffects,
  ...resourcesEffects,
  ...resourceManagersEffects,
  ...evictionEffects,
  ...networkingEffects,
  ...apiClientEffects,
};
