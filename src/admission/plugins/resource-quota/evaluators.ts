/** The evaluators of all kinds that quotas can count. */
import { ONE_UNIT, type ResourceQuantities } from "../../../api/core/resources/quantities.ts";
import type { Kind } from "../../../api/kind.ts";
import { kubernetesGroup, svcGroup } from "../../../api/scheme.ts";
import { claimEvaluator } from "./claim-usage.ts";
import type { Evaluator } from "./evaluator.ts";
import { podEvaluator } from "./pod-usage.ts";
import { serviceEvaluator } from "./service-usage.ts";

/** Kinds with a plain resource name from before `count/` existed. */
const PLAIN_NAMES = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

const evaluators: Readonly<Record<string, Evaluator>> = {
  "/pods": podEvaluator as Evaluator,
  "/services": serviceEvaluator as Evaluator,
  "/persistentvolumeclaims": claimEvaluator as Evaluator,
};

/** Not counted: Events are too frequent; reviews and bindings are not stored. */
const UNCOUNTED = ["/events", "events.svc.io/events", "/bindings", "authorization.svc.io/localsubjectaccessreviews"];

/** Undefined if quotas cannot count the kind. */
export function evaluatorOf({
  group,
  plural,
  namespaced,
}: Pick<Kind, "group" | "plural" | "namespaced">): Evaluator | undefined {
  const resource = `${svcGroup(group)}/${plural}`;
  if (!namespaced || UNCOUNTED.includes(resource)) return undefined;
  return evaluators[resource] ?? objectCountEvaluator(group, plural);
}

/** `count/deployments.apps`, for each alias of the group. */
export function countNames(group: string, plural: string): readonly string[] {
  if (group === "") return [`count/${plural}`];
  return [...new Set([kubernetesGroup(group), svcGroup(group)])].map((aliasText) => `count/${plural}.${aliasText}`);
}

function objectCountEvaluator(group: string, plural: string): Evaluator {
  const names = [...countNames(group, plural), ...(group === "" && PLAIN_NAMES.includes(plural) ? [plural] : [])];
  const usage: ResourceQuantities = new Map(names.map((name) => [name, ONE_UNIT]));
  return {
    handles: (operation, subresource) => operation === "CREATE" && subresource === "",
    isUniform: true,
    counts: (resource) => names.includes(resource),
    usage: () => usage,
    matchesScope: () => false,
  };
}
