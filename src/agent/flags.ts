/** Every flag of `svc agent`, in the order of its help. */
import { flag, section } from "../flags/flag.ts";
import { agentGates } from "../flags/gate-tables/agent.ts";
import type { Program } from "../flags/program.ts";
import { bool } from "../flags/types/text.ts";
import { apiClientFlags } from "./flags/api-client.ts";
import { authenticationFlags } from "./flags/authentication.ts";
import { identityFlags } from "./flags/identity.ts";
import { networkingFlags } from "./flags/networking.ts";
import { resourcesFlags } from "./flags/resources.ts";
import { runtimeFlags } from "./flags/runtime.ts";
import { servingFlags } from "./flags/serving.ts";
import { sourcesFlags } from "./flags/sources.ts";

const ownFlags = section("Inspection", {
  "dry-run-config": flag(
    bool,
    false,
    "Print the effective configuration as YAML, with the origin of every value, and exit; 1 when it is not valid.",
  ),
});

export const agentFlags = {
  ...identityFlags,
  ...sourcesFlags,
  ...servingFlags,
  ...authenticationFlags,
  ...runtimeFlags,
  ...resourcesFlags,
  ...networkingFlags,
  ...apiClientFlags,
  ...ownFlags,
};

export const agentProgram: Program<typeof agentFlags> = {
  name: "svc agent",
  summary:
    "The node agent registers its machine with the API server and keeps the pods that are meant for it running and " +
    "healthy, through a container runtime.",
  flags: agentFlags,
  gates: agentGates,
};
