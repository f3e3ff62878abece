import type { Node } from "../../api/core/node/schema.ts";
import type { Toleration } from "../../api/core/pod-spec/affinity.ts";
import type { Filter } from "./filter.ts";

type Taint = NonNullable<NonNullable<Node["spec"]>["taints"]>[number];

/** The pod must tolerate all taints except those with the effect PreferNoSchedule. */
export const taints: Filter = (pod, { node }) => {
  const tolerations = pod.spec?.tolerations ?? [];
  const obstacle = (node.spec?.taints ?? []).find(
    (taint) => taint.effect !== "PreferNoSchedule" && !tolerations.some((toleration) => tolerates(toleration, taint)),
  );
  return obstacle === undefined ? [] : [`node(s) had untolerated taint {${obstacle.key}: ${obstacle.value ?? ""}}`];
};

export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  if (toleration.operator === "Exists") return true;
  return Boolean(toleration.key) && (toleration.value ?? "") === (taint.value ?? "");
}
