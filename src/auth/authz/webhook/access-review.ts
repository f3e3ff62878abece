/** Converts authorization attributes to the spec of a `SubjectAccessReview`. */
import type { SubjectAccessReviewSpec } from "../../../api/authorization/access-review/schema.ts";
import type { FieldSelectorRequirement, LabelSelectorRequirement } from "../../../api/meta/label-selector.ts";
import { parseLabelSelector } from "../../../api/meta/selectors/selector.ts";
import { StatusError } from "../../../api/status.ts";
import type { Attributes } from "../../user.ts";

export function toAccessReviewSpec(attributes: Attributes): SubjectAccessReviewSpec {
  const { user, isResourceRequest, path, verb } = attributes;
  const userFields = {
    ...nonEmpty("user", user.name),
    ...(user.groups.length === 0 ? {} : { groups: user.groups }),
    ...(Object.keys(user.extra).length === 0 ? {} : { extra: user.extra }),
    ...nonEmpty("uid", user.uid),
  };
  if (!isResourceRequest) return { nonResourceAttributes: { ...nonEmpty("path", path), verb }, ...userFields };
  return { resourceAttributes: toResourceAttributes(attributes), ...userFields };
}

function toResourceAttributes(attributes: Attributes): NonNullable<SubjectAccessReviewSpec["resourceAttributes"]> {
  const fields = fieldRequirements(attributes.fieldSelector ?? "");
  const labels = labelRequirements(attributes.labelSelector ?? "");
  return {
    ...nonEmpty("namespace", attributes.namespace),
    ...nonEmpty("verb", attributes.verb),
    ...nonEmpty("group", attributes.apiGroup),
    ...nonEmpty("version", attributes.apiVersion),
    ...nonEmpty("resource", attributes.resource),
    ...nonEmpty("subresource", attributes.subresource),
    ...nonEmpty("name", attributes.name),
    ...(fields.length === 0 ? {} : { fieldSelector: { requirements: fields } }),
    ...(labels.length === 0 ? {} : { labelSelector: { requirements: labels } }),
  };
}

function nonEmpty<N extends string>(name: N, value: string): { readonly [K in N]?: string } {
  return value === "" ? {} : ({ [name]: value } as { readonly [K in N]?: string });
}

/** Skips invalid terms: a selector only narrows a request. */
function fieldRequirements(selector: string): readonly FieldSelectorRequirement[] {
  return terms(selector).flatMap((term) => {
    const match = /^\s*([^=!\s]+)\s*(!=|==?)\s*(.*?)\s*$/s.exec(term);
    if (match === null) return [];
    const [, key = "", operator, value = ""] = match;
    return [{ key, operator: operator === "!=" ? "NotIn" : "In", values: [value.replace(/\\(.)/gs, "$1")] }];
  });
}

/** Splits at commas that are not escaped with a backslash. */
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
