import type { Filter } from "./filter.ts";

const UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable";

/** Nodes that are not ready do not get pods. */
export const nodeReady: Filter = (_pod, { node }) => {
  const ready = node.status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True");
  return ready === true ? [] : ["node(s) were not ready"];
};

/** Cordoned nodes only get pods that tolerate the taint. */
export const nodeSchedulable: Filter = (pod, { node }) => {
  if (node.spec?.unschedulable !== true) return [];
  const tolerated = pod.spec?.tolerations?.some(
    ({ key, operator, effect }) =>
      (key === UNSCHEDULABLE_TAINT || (!key && operator === "Exists")) && (!effect || effect === "NoSchedule"),
  );
  return tolerated === true ? [] : ["node(s) were unschedulable"];
};
