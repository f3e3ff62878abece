/** Selects the webhooks that apply to a request, and the version of the resource that each one receives. */

import type { RuleWithOperations } from "../../api/admissionregistration/rules.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import type { ApiObject } from "../../api/kind.ts";
import { matchesLabels, type Requirement } from "../../api/meta/selectors/selector.ts";
import type { Scheme } from "../../api/scheme.ts";
import { notFound, type StatusError } from "../../api/status.ts";
import { type AdmissionRequest, metadataOf } from "../chain/attributes.ts";
import type { ObjectReader } from "../chain/plugin.ts";
import { type EquivalentResource, equivalentResources, requestedResource } from "../matching/equivalent-resource.ts";
import { groupAliasIn, matchesRule } from "../matching/rules.ts";
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

function matchesObjects(selector: readonly Requirement[], { object, oldObject }: AdmissionRequest): boolean {
  if (selector.length === 0) return true;
  const matches = (one: ApiObject | undefined): boolean =>
    one?.metadata !== undefined && matchesLabels(selector, one.metadata.labels);
  return matches(object) || matches(oldObject);
}

async function matchesNamespace(
  selector: readonly Requirement[],
  request: AdmissionRequest,
  reader: ObjectReader,
): Promise<boolean> {
  const { namespace, kind, subresource, operation, object } = request;
  const isNamespace = kind.group === "" && kind.plural === "namespaces";
  if (selector.length === 0 || (namespace === "" && !isNamespace)) return true;
  if (isNamespace && subresource === "" && (operation === "CREATE" || operation === "UPDATE")) {
    return matchesLabels(selector, metadataOf(object).labels);
  }
  const found = await reader.get(namespaceKind, "", namespace, request);
  if (found === undefined) throw namespaceNotFound(namespace);
  return matchesLabels(selector, found.metadata?.labels);
}

function namespaceNotFound(name: string): StatusError {
  return notFound({ group: "", resource: "namespaces", name });
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
  if (exact !== undefined) return withGroupAlias(requested, exact);
  if (matchPolicy === "Exact" || rules.length === 0) return undefined;
  const others = equivalentResources(request, scheme);
  for (const rule of rules) {
    const resource = others.find((other) => matches(rule, other));
    if (resource !== undefined) return withGroupAlias(resource, rule);
  }
  return undefined;
}

/** The resource with the group alias that the rule uses. */
function withGroupAlias(resource: EquivalentResource, rule: RuleWithOperations): EquivalentResource {
  const group = groupAliasIn(rule, resource.group);
  if (group === resource.group) return resource;
  const isSameGroup = resource.objects.group === resource.group;
  return { ...resource, group, objects: isSameGroup ? { ...resource.objects, group } : resource.objects };
}
