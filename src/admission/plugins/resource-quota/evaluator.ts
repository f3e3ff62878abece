/** What quotas count of objects of a kind, and of which requests they have to be asked. */

import type { ScopedResourceSelectorRequirement } from "../../../api/core/resource-quota/schema.ts";
import { ONE_UNIT, type ResourceQuantities } from "../../../api/core/resources/quantities.ts";
import type { ApiObject, Kind } from "../../../api/kind.ts";
import { kubernetesGroup, svcGroup } from "../../../api/scheme.ts";
import type { Operation } from "../../chain/plugin.ts";
import { claimEvaluator } from "./claim-usage.ts";
import { podEvaluator } from "./pod-usage.ts";
import { serviceEvaluator } from "./service-usage.ts";

export interface Evaluator<T extends ApiObject = ApiObject> {
  /** Whether such a request may change what is used. */
  handles(operation: Operation, subresource: string): boolean;
  /** Every object uses the same, so that nobody has to look into it. */
  readonly isUniform: boolean;
  /** Whether it is one of the resources that are counted of such objects. */
  counts(resource: string): boolean;
  /** What the object uses of each of these; of resources that it does not name it uses nothing. */
  usage(object: T): ResourceQuantities;
  /** Whether the object lies within a scope. */
  isWithin(scope: ScopedResourceSelectorRequirement, object: T): boolean;
  /** What the object fails to say where these resources are limited. */
  missing?(object: T, limited: readonly string[]): string | undefined;
}

/** Which were counted before everything could be: by the plain name of the resource. */
const PLAINLY_COUNTED = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

const evaluators: Readonly<Record<string, Evaluator>> = {
  "/pods": podEvaluator as Evaluator,
  "/services": serviceEvaluator as Evaluator,
  "/persistentvolumeclaims": claimEvaluator as Evaluator,
};

/** Events come and go too fast; reviews and bindings are not kept. */
const UNCOUNTED = ["/events", "events.svc.io/events", "/bindings", "authorization.svc.io/localsubjectaccessreviews"];

/** Undefined where quotas count nothing. */
export function evaluatorOf({
  group,
  plural,
  namespaced,
}: Pick<Kind, "group" | "plural" | "namespaced">): Evaluator | undefined {
  const resource = `${svcGroup(group)}/${plural}`;
  if (!namespaced || UNCOUNTED.includes(resource)) return undefined;
  return evaluators[resource] ?? objectCount(group, plural);
}

/** `count/deployments.apps`: of any kind, in either spelling of its group. */
export function countNames(group: string, plural: string): readonly string[] {
  if (group === "") return [`count/${plural}`];
  return [...new Set([kubernetesGroup(group), svcGroup(group)])].map((spelled) => `count/${plural}.${spelled}`);
}

function objectCount(group: string, plural: string): Evaluator {
  const names = [...countNames(group, plural), ...(group === "" && PLAINLY_COUNTED.includes(plural) ? [plural] : [])];
  const usage: ResourceQuantities = new Map(names.map((name) => [name, ONE_UNIT]));
  return {
    handles: (operation, subresource) => operation === "CREATE" && subresource === "",
    isUniform: true,
    counts: (resource) => names.includes(resource),
    usage: () => usage,
    isWithin: () => false,
  };
}
