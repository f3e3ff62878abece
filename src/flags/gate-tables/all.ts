/** The feature gates of all components: the two programs' tables contain all gates of Kubernetes 1.33. */
import type { GateTable } from "../gates.ts";
import { agentGates } from "./agent.ts";
import { apiserverGates } from "./apiserver.ts";

export const allGates: GateTable = { ...agentGates, ...apiserverGates };
