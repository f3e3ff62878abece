/** Whether a webhook is to be asked about a request, and in which version of its resource. */

import type { RuleWithOperations } from "../../api/admissionregistration/rules.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import type { ApiObject } from "../../api/kind.ts";
import { matchesLabels, type Requirement } from "../../api/meta/selectors/selector.ts";
import type { Scheme } from "../../api/scheme.ts";
import { notFound, type StatusError } from "../../api/status.ts";
import { type EquivalentResource, equivalentResources, requestedResource } from "../matching/versioned-object.ts";
import { metadataOf } from "../chain/attributes.ts";
import type { AdmissionRequest, ObjectReader } from "../chain/plugin.ts";
import { matchesRule, groupAliasIn } from "../matching/rules.ts";
import type { Hook } from "./hook.ts";

export interface MatchDeps {
  readonly lookup: ObjectReader;
  readonly scheme: Scheme;
}

/** The form in which the webhook wants to see the objects; undefined where it is not concerned. Throws a 404. */
export async function formFor(hook: Hook, request: AdmissionRequest, deps: MatchDeps): Promise<EquivalentResource | undefined> {
  const objects = matchesObjects(hook.objects, request);
  if (!objects) return undefined;
  const form = formByRules(hook, request, deps.scheme);
  if (form === undefined) return undefined;
  // Only whoever is concerned otherwise needs the namespace, which may be missing.
  return (await matchesNamespace(hook.namespaces, request, deps.lookup)) ? form : undefined;
}

function matchesObjects(selector: readonly Requirement[], { object, oldObject: previous }: AdmissionRequest): boolean {
  if (selector.length === 0) return true;
  const matches = (one: ApiObject | undefined): boolean =>
    one?.metadata !== undefined && matchesLabels(selector, one.metadata.labels);
  return matches(object) || matches(previous);
}

async function matchesNamespace(
  selector: readonly Requirement[],
  request: AdmissionRequest,
  lookup: ObjectReader,
): Promise<boolean> {
  const { namespace, kind, subresource, operation, object } = request;
  const isNamespace = kind.group === "" && kind.plural === "namespaces";
  if (selector.length === 0 || (namespace === "" && !isNamespace)) return true;
  if (isNamespace && subresource === "" && (operation === "CREATE" || operation === "UPDATE")) {
    return matchesLabels(selector, metadataOf(object).labels);
  }
  const found = await lookup.get(namespaceKind, "", namespace, request);
  if (found === undefined) throw missing(namespace);
  return matchesLabels(selector, found.metadata?.labels);
}

function missing(name: string): StatusError {
  return notFound({ group: "", resource: "namespaces", name });
}

function formByRules({ webhook }: Hook, request: AdmissionRequest, scheme: Scheme): EquivalentResource | undefined {
  const { operation, subresource, namespace } = request;
  const { rules = [], matchPolicy } = webhook;
  const concerns = (rule: RuleWithOperations, { group, version, plural }: EquivalentResource): boolean =>
    matchesRule(rule, { operation, group, version, plural, subresource, namespace });
  const sent = requestedResource(request);
  const exact = rules.find((rule) => concerns(rule, sent));
  if (exact !== undefined) return spelled(sent, exact);
  if (matchPolicy === "Exact" || rules.length === 0) return undefined;
  const others = equivalentResources(request, scheme);
  for (const rule of rules) {
    const form = others.find((other) => concerns(rule, other));
    if (form !== undefined) return spelled(form, rule);
  }
  return undefined;
}

/** A webhook reads the spelling that its rule uses. */
function spelled(form: EquivalentResource, rule: RuleWithOperations): EquivalentResource {
  const group = groupAliasIn(rule, form.group);
  if (group === form.group) return form;
  const own = form.objects.group === form.group;
  return { ...form, group, objects: own ? { ...form.objects, group } : form.objects };
}
