/** New nodes are kept free of pods until somebody says that they are ready: the node lifecycle controller lifts it. */

import { nodeKind } from "../../../api/core/node/kind.ts";
import type { Node, Taint } from "../../../api/core/node/schema.ts";
import { matchesResource } from "../../chain/attributes.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

const NOT_READY: Taint = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };
const SPELLINGS: ReadonlySet<string> = new Set([NOT_READY.key, "node.svc.io/not-ready"]);

export function taintNodesByCondition(): AdmissionPlugin {
  return {
    name: "TaintNodesByCondition",
    handles: (attributes) => matchesResource(attributes, nodeKind, ["CREATE"]),
    mutate({ object }) {
      const node = object as Node;
      const taints = node.spec?.taints ?? [];
      if (taints.some(({ key, effect }) => effect === NOT_READY.effect && SPELLINGS.has(key))) return undefined;
      return { ...node, spec: { ...node.spec, taints: [...taints, NOT_READY] } } as Node;
    },
  };
}
