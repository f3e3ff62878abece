import type { Pod } from "../../../api/core/pod/schema.ts";
import { uidOf } from "../../cache/pod-info.ts";
import type { Plugin } from "../../framework/plugin.ts";
import { unresolvable } from "../../framework/rejection.ts";

const NAME = "SchedulingGates";

/** Pods with gates wait until their gates are removed. */
export const schedulingGates: Plugin = {
  name: NAME,
  points: ["preEnqueue"],
  events: [
    {
      resource: "UnschedulablePod",
      actions: ["UpdatePodSchedulingGatesEliminated"],
      hint: (pod, { after }) => uidOf(after as Pod) === uidOf(pod),
    },
  ],
  preEnqueue({ pod }) {
    const gates = pod.spec?.schedulingGates ?? [];
    if (gates.length === 0) return undefined;
    return unresolvable(NAME, `waiting for scheduling gates: [${gates.map(({ name }) => name).join(" ")}]`);
  },
};
