/** What an authorizer is asked, as the question that Kubernetes' API asks: a `SubjectAccessReview`. */
import type { SubjectAccessReviewSpec } from "../../../api/authorization/access-review/schema.ts";
import type { FieldSelectorRequirement, LabelSelectorRequirement } from "../../../api/meta/label-selector.ts";
import { parseLabelSelector } from "../../../api/meta/selectors/selector.ts";
import { StatusError } from "../../../api/status.ts";
import type { Attributes } from "../../user.ts";

export function accessRequest(attributes: Attributes): SubjectAccessReviewSpec {
  const { user, isResourceRequest, path, verb } = attributes;
  const who = {
    ...said("user", user.name),
    ...(user.groups.length === 0 ? {} : { groups: user.groups }),
    ...(Object.keys(user.extra).length === 0 ? {} : { extra: user.extra }),
    ...said("uid", user.uid),
  };
  if (!isResourceRequest) return { nonResourceAttributes: { ...said("path", path), verb }, ...who };
  return { resourceAttributes: resourceOf(attributes), ...who };
}

function resourceOf(attributes: Attributes): NonNullable<SubjectAccessReviewSpec["resourceAttributes"]> {
  const fields = fieldRequirements(attributes.fieldSelector ?? "");
  const labels = labelRequirements(attributes.labelSelector ?? "");
  return {
    ...said("namespace", attributes.namespace),
    ...said("verb", attributes.verb),
    ...said("group", attributes.apiGroup),
    ...said("version", attributes.apiVersion),
    ...said("resource", attributes.resource),
    ...said("subresource", attributes.subresource),
    ...said("name", attributes.name),
    ...(fields.length === 0 ? {} : { fieldSelector: { requirements: fields } }),
    ...(labels.length === 0 ? {} : { labelSelector: { requirements: labels } }),
  };
}

function said<N extends string>(name: N, value: string): { readonly [K in N]?: string } {
  return value === "" ? {} : ({ [name]: value } as { readonly [K in N]?: string });
}

/** Terms that cannot be read are left out: selectors only ever narrow. */
function fieldRequirements(selector: string): readonly FieldSelectorRequirement[] {
  return terms(selector).flatMap((term) => {
    const match = /^\s*([^=!\s]+)\s*(!=|==?)\s*(.*?)\s*$/s.exec(term);
    if (match === null) return [];
    const [, key = "", operator, value = ""] = match;
    return [{ key, operator: operator === "!=" ? "NotIn" : "In", values: [value.replace(/\\(.)/gs, "$1")] }];
  });
}

/** Separated by commas, unless a backslash stands before. */
function terms(selector: string): readonly string[] {
  return selector.match(/(?:\\.|[^,\\])+/gs) ?? [];
}

function labelRequirements(selector: string): readonly LabelSelectorRequirement[] {
  try {
    return parseLabelSelector(selector).flatMap(({ key, operator, values }) => {
      if (operator === "Gt" || operator === "Lt") return [];
      return [{ key, operator, ...(values.length === 0 ? {} : { values }) }];
    });
  } catch (error) {
    if (error instanceof StatusError) return [];
    throw error;
  }
}
