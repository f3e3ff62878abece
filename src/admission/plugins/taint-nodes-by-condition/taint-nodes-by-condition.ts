/** TaintNodesByCondition: taints new nodes as not ready. The node lifecycle controller removes the taint. */

import { nodeKind } from "../../../api/core/node/kind.ts";
import type { Node, Taint } from "../../../api/core/node/schema.ts";
import { matchesResource } from "../../chain/attributes.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

const NOT_READY: Taint = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };
const TAINT_KEYS: ReadonlySet<string> = new Set([NOT_READY.key, "node.svc.io/not-ready"]);

export function taintNodesByCondition(): AdmissionPlugin {
  return {
    name: "TaintNodesByCondition",
    handles: (attributes) => matchesResource(attributes, nodeKind, ["CREATE"]),
    mutate({ object }) {
      const node = object as Node;
      const taints = node.spec?.taints ?? [];
      if (taints.some(({ key, effect }) => effect === NOT_READY.effect && TAINT_KEYS.has(key))) return undefined;
      return { ...node, spec: { ...node.spec, taints: [...taints, NOT_READY] } } as Node;
    },
  };
}
