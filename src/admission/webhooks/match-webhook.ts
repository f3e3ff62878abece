/** Selects the webhooks that apply to a request, and the version of the resource that each one receives. */

import type { RuleWithOperations } from "../../api/admissionregistration/rules.ts";
import type { Scheme } from "../../api/scheme.ts";
import type { AdmissionRequest } from "../chain/attributes.ts";
import type { ObjectReader } from "../chain/plugin.ts";
import {
  type EquivalentResource,
  equivalentResources,
  requestedResource,
  withGroupAlias,
} from "../matching/equivalent-resource.ts";
import { groupAliasIn, matchesRule } from "../matching/rules.ts";
import { matchesNamespace, matchesObjects } from "../matching/selectors.ts";
import type { ConfiguredWebhook } from "./webhook-source.ts";

export interface MatchDeps {
  readonly reader: ObjectReader;
  readonly scheme: Scheme;
}

/**
 * The resource, in the version of the webhook's rule; undefined if the webhook does not apply. Throws a 404 if the
 * namespace does not exist.
 */
export async function matchWebhook(
  webhook: ConfiguredWebhook,
  request: AdmissionRequest,
  deps: MatchDeps,
): Promise<EquivalentResource | undefined> {
  const objects = matchesObjects(webhook.objects, request);
  if (!objects) return undefined;
  const resource = matchRules(webhook, request, deps.scheme);
  if (resource === undefined) return undefined;
  // Checked last, since a missing namespace is an error.
  return (await matchesNamespace(webhook.namespaces, request, deps.reader)) ? resource : undefined;
}

function matchRules(
  { definition: webhook }: ConfiguredWebhook,
  request: AdmissionRequest,
  scheme: Scheme,
): EquivalentResource | undefined {
  const { operation, subresource, namespace } = request;
  const { rules = [], matchPolicy } = webhook;
  const matches = (rule: RuleWithOperations, { group, version, plural }: EquivalentResource): boolean =>
    matchesRule(rule, { operation, group, version, plural, subresource, namespace });
  const requested = requestedResource(request);
  const exact = rules.find((rule) => matches(rule, requested));
  if (exact !== undefined) return withGroupAlias(requested, groupAliasIn(exact, requested.group));
  if (matchPolicy === "Exact" || rules.length === 0) return undefined;
  const others = equivalentResources(request, scheme);
  for (const rule of rules) {
    const resource = others.find((other) => matches(rule, other));
    if (resource !== undefined) return withGroupAlias(resource, groupAliasIn(rule, resource.group));
  }
  return undefined;
}
