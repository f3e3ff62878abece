/** Quota evaluators: what quotas count of the objects of a kind. */

import type { ScopedResourceSelectorRequirement } from "../../../api/core/resource-quota/schema.ts";
import { ONE_UNIT, type ResourceQuantities } from "../../../api/core/resources/quantities.ts";
import type { ApiObject, Kind } from "../../../api/kind.ts";
import { kubernetesGroup, svcGroup } from "../../../api/scheme.ts";
import type { Operation } from "../../chain/plugin.ts";
import { claimEvaluator } from "./claim-usage.ts";
import { podEvaluator } from "./pod-usage.ts";
import { serviceEvaluator } from "./service-usage.ts";

export interface Evaluator<T extends ApiObject = ApiObject> {
  /** Whether such a request may change the usage. */
  handles(operation: Operation, subresource: string): boolean;
  /** All objects have the same usage, so their content is not needed. */
  readonly isUniform: boolean;
  /** Whether the evaluator counts this resource. */
  counts(resource: string): boolean;
  /** The usage of one object. Resources that are not in the map are not used. */
  usage(object: T): ResourceQuantities;
  /** Whether the object matches a scope. */
  matchesScope(scope: ScopedResourceSelectorRequirement, object: T): boolean;
  /** An error if the object does not specify a resource that is limited. */
  missing?(object: T, limited: readonly string[]): string | undefined;
}

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
  return [...new Set([kubernetesGroup(group), svcGroup(group)])].map((spelled) => `count/${plural}.${spelled}`);
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
