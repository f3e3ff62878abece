/** Checks a request against the quotas of its namespace and computes the new usage. */

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
import type { ResourceList } from "../../../api/core/resources/schema.ts";
import type { ApiObject } from "../../../api/kind.ts";
import { svcGroup } from "../../../api/scheme.ts";
import { StatusError } from "../../../api/status.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import { type AdmissionRequest, metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { LimitedResource } from "./configuration.ts";
import type { Evaluator } from "./evaluator.ts";
import { formatScopes, type Scope, scopesOf } from "./scopes.ts";

/**
 * Returns the quotas with the usage after the request; `quotas` itself if the usage does not change. Throws a
 * `StatusError` if the request exceeds a quota.
 */
export function checkRequest(
  quotas: readonly ResourceQuota[],
  request: AdmissionRequest,
  evaluator: Evaluator,
  limited: readonly LimitedResource[],
): readonly ResourceQuota[] {
  const object = request.object as ApiObject;
  const matching = quotas.filter((quota) => appliesTo(quota, object, evaluator));
  for (const quota of matching) checkState(quota, request, object, evaluator);
  const change = usageDelta(request, object, evaluator);
  if (change.size === 0) return quotas;
  checkCovered(quotas, matching, request, object, evaluator, limited);
  return matching.length === 0
    ? quotas
    : quotas.map((quota) => (matching.includes(quota) ? chargeQuota(quota, change, request) : quota));
}

/** Whether the quota limits resources of such objects and its scopes match this one. */
export function appliesTo(quota: ResourceQuota, object: ApiObject, evaluator: Evaluator): boolean {
  return (
    Object.keys(quota.status?.hard ?? {}).some((name) => evaluator.counts(name)) &&
    scopesOf(quota).every((scope) => evaluator.matchesScope(scope, object))
  );
}

/** A quota without status does not limit anything yet. */
function limitedResourcesOf({ status }: ResourceQuota, evaluator: Evaluator): readonly string[] {
  return Object.keys(status?.hard ?? {}).filter((name) => evaluator.counts(name));
}

function checkState(quota: ResourceQuota, request: AdmissionRequest, object: ApiObject, evaluator: Evaluator): void {
  const { name } = metadataOf(quota);
  const resources = limitedResourcesOf(quota, evaluator);
  const missing = evaluator.missing?.(object, resources);
  if (missing !== undefined) throw newForbidden(request, `failed quota: ${name}: ${missing}`);
  if (resources.every((resource) => quota.status?.used?.[resource] !== undefined)) return;
  throw newForbidden(request, `status unknown for quota: ${name}, resources: ${resources.toSorted().join(",")}`);
}

/**
 * The additional usage. Usage that decreases is only counted here for pods; otherwise the controller recalculates it.
 */
function usageDelta(request: AdmissionRequest, object: ApiObject, evaluator: Evaluator): ResourceQuantities {
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

/** Rejects the use of limited resources without a quota that covers them (`limitedResources`). */
function checkCovered(
  quotas: readonly ResourceQuota[],
  matching: readonly ResourceQuota[],
  request: AdmissionRequest,
  object: ApiObject,
  evaluator: Evaluator,
  limited: readonly LimitedResource[],
): void {
  if (limited.length === 0) return;
  const isOwn = ({ apiGroup = "", resource }: LimitedResource): boolean =>
    resource === request.kind.plural && svcGroup(apiGroup) === svcGroup(request.kind.group);
  const applicable = limited.filter(isOwn);
  const used = filterResources(evaluator.usage(object), (_, { nanos }) => nanos > 0n);
  const uncovered = [...used.keys()]
    .filter((name) => applicable.some(({ matchContains = [] }) => matchContains.some((part) => name.includes(part))))
    .filter((name) => !matching.some((quota) => quota.status?.hard?.[name] !== undefined))
    .sort();
  if (uncovered.length > 0) throw newForbidden(request, `insufficient quota to consume: ${uncovered.join(",")}`);
  const isWithin = (scope: Scope): boolean => evaluator.matchesScope(scope, object);
  const covered = new Set(
    quotas.flatMap((quota) => scopesOf(quota).filter(isWithin)).map(({ scopeName }) => scopeName),
  );
  const missingScopes = limited
    .flatMap(({ matchScopes = [] }) => matchScopes.filter(isWithin))
    .filter(({ scopeName }) => !covered.has(scopeName));
  if (missingScopes.length > 0) {
    // Kubernetes returns this error without a reason, as a 500.
    throw new StatusError(500, "", `insufficient quota to match these scopes: ${formatScopes(missingScopes)}`);
  }
}

/** Parses only the quantities that the request changes: a quota may limit thousands of resources. */
function chargeQuota(quota: ResourceQuota, change: ResourceQuantities, request: AdmissionRequest): ResourceQuota {
  const { hard: limits = {}, used: usage = {} } = quota.status ?? {};
  const requested = filterResources(change, (name) => Object.hasOwn(limits, name));
  if (requested.size === 0) return quota;
  const hard = parseResourceList(pickMembers(limits, requested));
  const used = parseResourceList(pickMembers(usage, requested));
  const after = addResources(used, requested);
  const isExceeded = (name: string): boolean => (after.get(name)?.nanos ?? 0n) > (hard.get(name)?.nanos ?? 0n);
  const exceeded = (amounts: ResourceQuantities): string => resourcesText(filterResources(amounts, isExceeded));
  if ([...requested.keys()].some(isExceeded)) {
    const parts = `requested: ${exceeded(requested)}, used: ${exceeded(used)}, limited: ${exceeded(hard)}`;
    throw newForbidden(request, `exceeded quota: ${metadataOf(quota).name}, ${parts}`);
  }
  return { ...quota, status: { ...quota.status, used: { ...usage, ...formatResourceList(after) } } };
}

function pickMembers(list: ResourceList, names: ResourceQuantities): ResourceList {
  const members: [string, string][] = [];
  for (const name of names.keys()) {
    const text = getMember(list, name);
    if (text !== undefined) members.push([name, text]);
  }
  return Object.fromEntries(members);
}
