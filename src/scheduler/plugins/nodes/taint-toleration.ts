import type { Node } from "../../../api/core/node/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Taint } from "../../cache/node-info.ts";
import { uidOf } from "../../cache/pod-info.ts";
import type { Plugin } from "../../framework/plugin.ts";
import { type Rejection, unresolvable } from "../../framework/rejection.ts";
import { normalizeReversed } from "../normalize.ts";
import { findUntoleratedTaint, isTolerated } from "./tolerations.ts";

const NAME = "TaintToleration";

/** The pod must tolerate all taints; it prefers nodes whose taints of effect PreferNoSchedule it tolerates. */
export const taintToleration: Plugin = {
  name: NAME,
  points: ["filter", "preScore", "score"],
  events: [
    {
      resource: "Node",
      actions: ["Add", "UpdateNodeTaint"],
      hint: (pod, { before, after }) =>
        isTaintedFor(pod, before as Node | undefined) !== false && isTaintedFor(pod, after as Node) === false,
    },
    {
      resource: "UnschedulablePod",
      actions: ["UpdatePodToleration"],
      hint: (pod, { after }) => uidOf(after as Pod) === uidOf(pod),
    },
  ],
  preFilter({ pod }) {
    const tolerations = pod.pod.spec?.tolerations ?? [];
    return {
      filter: {
        filter({ taints }) {
          if (taints.length === 0) return undefined;
          const taint = findUntoleratedTaint(tolerations, taints);
          return taint && untolerated(taint);
        },
      },
    };
  },
  preScore({ pod }) {
    const tolerations = (pod.pod.spec?.tolerations ?? []).filter(
      ({ effect }) => !effect || effect === "PreferNoSchedule",
    );
    return {
      score({ taints }) {
        if (taints.length === 0) return 0;
        return taints.filter((taint) => taint.effect === "PreferNoSchedule" && !isTolerated(tolerations, taint)).length;
      },
      normalize: normalizeReversed,
    };
  },
};

/** Undefined if there is no node. */
function isTaintedFor(pod: Pod, node: Node | undefined): boolean | undefined {
  return node && findUntoleratedTaint(pod.spec?.tolerations ?? [], node.spec?.taints ?? []) !== undefined;
}

function untolerated({ key, value = "" }: Taint): Rejection {
  return unresolvable(NAME, `node(s) had untolerated taint {${key}: ${value}}`);
}
