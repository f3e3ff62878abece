/** Whether a request fits into the quotas of its namespace, and what they have used then. */

import { podKind } from "../../../api/core/pod/kind.ts";
import type { ResourceQuota } from "../../../api/core/resource-quota/schema.ts";
import {
  addResources,
  filterResources,
  formatResourceList,
  parseResourceList,
  type ResourceQuantities,
  resourcesText,
  subtractResources,
} from "../../../api/core/resources/quantities.ts";
import type { ApiObject } from "../../../api/kind.ts";
import { svcGroup } from "../../../api/scheme.ts";
import { StatusError } from "../../../api/status.ts";
import { metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionRequest } from "../../chain/plugin.ts";
import type { LimitedResource } from "./configuration.ts";
import type { Evaluator } from "./evaluator.ts";
import { type Scope, scopesOf, scopesText } from "./scopes.ts";

/**
 * The same quotas with what is used when the request is done; `quotas` itself where that changes nothing. Throws a
 * `StatusError` for what does not fit.
 */
export function checkRequest(
  quotas: readonly ResourceQuota[],
  request: AdmissionRequest,
  evaluator: Evaluator,
  limited: readonly LimitedResource[],
): readonly ResourceQuota[] {
  const object = request.object as ApiObject;
  const concerned = quotas.filter((quota) => concerns(quota, object, evaluator));
  for (const quota of concerned) checkState(quota, request, object, evaluator);
  const change = changeOf(request, object, evaluator);
  if (change.size === 0) return quotas;
  checkCovered(quotas, concerned, request, object, evaluator, limited);
  return concerned.length === 0
    ? quotas
    : quotas.map((quota) => (concerned.includes(quota) ? charged(quota, change, request) : quota));
}

/** Whether the quota limits anything of such objects, and has this one within its scopes. */
export function concerns(quota: ResourceQuota, object: ApiObject, evaluator: Evaluator): boolean {
  return limitedBy(quota, evaluator).length > 0 && scopesOf(quota).every((scope) => evaluator.isWithin(scope, object));
}

/** Until its status says so, a quota limits nothing. */
function limitedBy({ status }: ResourceQuota, evaluator: Evaluator): readonly string[] {
  return Object.keys(status?.hard ?? {})
    .filter((name) => evaluator.counts(name))
    .sort();
}

function checkState(quota: ResourceQuota, request: AdmissionRequest, object: ApiObject, evaluator: Evaluator): void {
  const { name } = metadataOf(quota);
  const resources = limitedBy(quota, evaluator);
  const missing = evaluator.missing?.(object, resources);
  if (missing !== undefined) throw newForbidden(request, `failed quota: ${name}: ${missing}`);
  if (resources.every((resource) => quota.status?.used?.[resource] !== undefined)) return;
  throw newForbidden(request, `status unknown for quota: ${name}, resources: ${resources.join(",")}`);
}

/** How much more is used. What became less is counted out later, but of pods that are resized. */
function changeOf(request: AdmissionRequest, object: ApiObject, evaluator: Evaluator): ResourceQuantities {
  const usage = evaluator.usage(object);
  const negative = [...filterResources(usage, (_, { nanos }) => nanos < 0n).keys()].sort();
  if (negative.length > 0) {
    throw newForbidden(request, `quota usage is negative for resource(s): ${negative.join(",")}`);
  }
  const { oldObject } = request;
  const change = oldObject === undefined ? usage : subtractResources(usage, evaluator.usage(oldObject));
  const isPod = request.kind.plural === podKind.plural;
  return filterResources(change, (_, { nanos }) => (isPod ? nanos !== 0n : nanos > 0n));
}

/** What the operator keeps for those whom a quota allows it. */
function checkCovered(
  quotas: readonly ResourceQuota[],
  concerned: readonly ResourceQuota[],
  request: AdmissionRequest,
  object: ApiObject,
  evaluator: Evaluator,
  limited: readonly LimitedResource[],
): void {
  if (limited.length === 0) return;
  const isOwn = ({ apiGroup = "", resource }: LimitedResource): boolean =>
    resource === request.kind.plural && svcGroup(apiGroup) === svcGroup(request.kind.group);
  const own = limited.filter(isOwn);
  const used = filterResources(evaluator.usage(object), (_, { nanos }) => nanos > 0n);
  const uncovered = [...used.keys()]
    .filter((name) => own.some(({ matchContains = [] }) => matchContains.some((part) => name.includes(part))))
    .filter((name) => !concerned.some((quota) => quota.status?.hard?.[name] !== undefined))
    .sort();
  if (uncovered.length > 0) throw newForbidden(request, `insufficient quota to consume: ${uncovered.join(",")}`);
  const isWithin = (scope: Scope): boolean => evaluator.isWithin(scope, object);
  const covered = new Set(
    quotas.flatMap((quota) => scopesOf(quota).filter(isWithin)).map(({ scopeName }) => scopeName),
  );
  const bare = limited
    .flatMap(({ matchScopes = [] }) => matchScopes.filter(isWithin))
    .filter(({ scopeName }) => !covered.has(scopeName));
  if (bare.length > 0) {
    // Kubernetes says this without a reason, and it is a 500.
    throw new StatusError(500, "", `insufficient quota to match these scopes: ${scopesText(bare)}`);
  }
}

function charged(quota: ResourceQuota, change: ResourceQuantities, request: AdmissionRequest): ResourceQuota {
  const hard = parseResourceList(quota.status?.hard);
  const used = parseResourceList(quota.status?.used);
  const requested = filterResources(change, (name) => hard.has(name));
  if (requested.size === 0) return quota;
  const after = addResources(used, requested);
  const isExceeded = (name: string): boolean =>
    requested.has(name) && (after.get(name)?.nanos ?? 0n) > (hard.get(name)?.nanos ?? 0n);
  const exceeded = (amounts: ResourceQuantities): string => resourcesText(filterResources(amounts, isExceeded));
  if ([...requested.keys()].some(isExceeded)) {
    const parts = `requested: ${exceeded(requested)}, used: ${exceeded(used)}, limited: ${exceeded(hard)}`;
    throw newForbidden(request, `exceeded quota: ${metadataOf(quota).name}, ${parts}`);
  }
  return { ...quota, status: { ...quota.status, used: formatResourceList(after) } };
}
