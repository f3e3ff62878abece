import type { Node } from "../../../api/core/node/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { uidOf } from "../../cache/pod-info.ts";
import type { Plugin } from "../../framework/plugin.ts";
import { unresolvable } from "../../framework/rejection.ts";
import { isTolerated } from "./tolerations.ts";

const NAME = "NodeUnschedulable";
const UNSCHEDULABLE = unresolvable(NAME, "node(s) were unschedulable");
const TAINT = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" } as const;

/** Cordoned nodes only get pods that tolerate the taint of cordoned nodes. */
export const nodeUnschedulable: Plugin = {
  name: NAME,
  points: ["filter"],
  events: [
    {
      resource: "Node",
      actions: ["Add", "UpdateNodeTaint"],
      hint: (_pod, { before, after }) => !isCordoned(after) && (before === undefined || isCordoned(before)),
    },
    {
      resource: "UnschedulablePod",
      actions: ["UpdatePodToleration"],
      hint: (pod, { after }) => uidOf(after as Pod) === uidOf(pod) && toleratesCordon(after as Pod),
    },
  ],
  preFilter({ pod }) {
    if (toleratesCordon(pod.pod)) return "skip";
    return { filter: { filter: ({ node }) => (node?.spec?.unschedulable === true ? UNSCHEDULABLE : undefined) } };
  },
};

function toleratesCordon({ spec }: Pod): boolean {
  return isTolerated(spec?.tolerations ?? [], TAINT);
}

function isCordoned(node: Node | undefined): boolean {
  return node?.spec?.unschedulable === true;
}
