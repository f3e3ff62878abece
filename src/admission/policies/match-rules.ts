/** Which requests the match constraints of a policy, or of its binding, match. */
import type { MatchResources, NamedRuleWithOperations } from "../../api/admissionregistration/rules.ts";
import { type Requirement, requirementsOf } from "../../api/meta/selectors/selector.ts";
import type { Scheme } from "../../api/scheme.ts";
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import type { AdmissionAttributes, AdmissionRequest } from "../chain/attributes.ts";
import type { ObjectReader } from "../chain/plugin.ts";
import {
  type EquivalentResource,
  equivalentResources,
  requestedResource,
  withGroupAlias,
} from "../matching/equivalent-resource.ts";
import { groupAliasIn, matchesRule } from "../matching/rules.ts";
import { matchesNamespace, matchesObjects } from "../matching/selectors.ts";

/** A rule that matches the attributes of a request, if the name is one of `names`; any name if there are none. */
interface MatchingRule {
  readonly names: readonly string[];
  readonly resource: EquivalentResource;
}

/** What is left to check for a request whose attributes match. */
export interface RequestMatcher {
  readonly namespaces: readonly Requirement[];
  readonly objects: readonly Requirement[];
  readonly excluded: readonly MatchingRule[];
  /** The first one that matches decides. */
  readonly included: readonly MatchingRule[];
}

/** Undefined if no request with these attributes matches. The result holds until the served kinds change. */
export function createRequestMatcher(
  match: MatchResources,
  attributes: AdmissionAttributes,
  scheme: Scheme,
): RequestMatcher | undefined {
  const { resourceRules = [], excludeResourceRules = [], matchPolicy } = match;
  const requested = requestedResource(attributes);
  const equivalents = matchPolicy === "Equivalent" ? equivalentResources(attributes, scheme) : [];
  const matching = (rules: readonly NamedRuleWithOperations[]): readonly MatchingRule[] => [
    ...rules.flatMap((rule) => matchRule(rule, attributes, requested)),
    ...rules.flatMap((rule) => equivalents.flatMap((resource) => matchRule(rule, attributes, resource))),
  ];
  const included = resourceRules.length === 0 ? [{ names: [], resource: requested }] : matching(resourceRules);
  if (included.length === 0) return undefined;
  const excluded = matching(excludeResourceRules);
  if (excluded.some(({ names }) => names.length === 0)) return undefined;
  return {
    namespaces: requirementsOf(match.namespaceSelector ?? {}),
    objects: requirementsOf(match.objectSelector ?? {}),
    excluded,
    included,
  };
}

function matchRule(
  rule: NamedRuleWithOperations,
  { operation, subresource, kind }: AdmissionAttributes,
  resource: EquivalentResource,
): readonly MatchingRule[] {
  const { group, version, plural } = resource;
  // A request for a namespaced resource always has a namespace.
  const namespace = kind.namespaced ? "any" : "";
  if (!matchesRule(rule, { operation, group, version, plural, subresource, namespace })) return [];
  return [{ names: rule.resourceNames ?? [], resource: withGroupAlias(resource, groupAliasIn(rule, group)) }];
}

/** The resource in the version of the rule; undefined if the request does not match. Throws or rejects with a 404. */
export function matchRequest(
  { namespaces, objects, excluded, included }: RequestMatcher,
  request: AdmissionRequest,
  reader: ObjectReader,
): MaybePromise<EquivalentResource | undefined> {
  const isNamed = ({ names }: MatchingRule): boolean => names.length === 0 || names.includes(request.name);
  if (!matchesObjects(objects, request) || excluded.some(isNamed)) return undefined;
  const rule = included.find(isNamed);
  if (rule === undefined) return undefined;
  // Checked last, since a missing namespace is an error.
  return andThen(matchesNamespace(namespaces, request, reader), (matches) => (matches ? rule.resource : undefined));
}
