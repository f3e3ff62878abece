import type { Filter } from "./filter.ts";

const UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable";

/** A node that does not report, or reports that it is not ready, takes no pods. */
export const nodeReady: Filter = (_pod, { node }) => {
  const ready = node.status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True");
  return ready === true ? [] : ["node(s) were not ready"];
};

/** A cordoned node takes only pods that tolerate it. */
export const nodeSchedulable: Filter = (pod, { node }) => {
  if (node.spec?.unschedulable !== true) return [];
  const tolerated = pod.spec?.tolerations?.some(
    ({ key, operator, effect }) =>
      (key === UNSCHEDULABLE_TAINT || (!key && operator === "Exists")) && (!effect || effect === "NoSchedule"),
  );
  return tolerated === true ? [] : ["node(s) were unschedulable"];
};
