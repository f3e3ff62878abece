import type { Pod } from "../../../api/core/pod/schema.ts";
import { isAssigned, PodInfo, portsConflict } from "../../cache/pod-info.ts";
import type { Plugin } from "../../framework/plugin.ts";
import { unschedulable } from "../../framework/rejection.ts";

const NAME = "NodePorts";
const CONFLICT = unschedulable(NAME, "node(s) didn't have free ports for the requested pod ports");

/** The host ports of the pod must be free on the node. */
export const nodePorts: Plugin = {
  name: NAME,
  points: ["preFilter", "filter"],
  events: [
    { resource: "AssignedPod", actions: ["Delete"], hint: (pod, { before }) => freesPort(pod, before as Pod) },
    { resource: "Node", actions: ["Add"] },
  ],
  preFilter({ pod: { hostPorts } }) {
    if (hostPorts.length === 0) return "skip";
    return { filter: { filter: (node) => (node.hasPortConflict(hostPorts) ? CONFLICT : undefined) } };
  },
};

function freesPort(pod: Pod, deleted: Pod): boolean {
  if (!isAssigned(deleted) && !deleted.status?.nominatedNodeName) return false;
  const { hostPorts } = new PodInfo(pod);
  return new PodInfo(deleted).hostPorts.some((freed) => hostPorts.some((wanted) => portsConflict(freed, wanted)));
}
