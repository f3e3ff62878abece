import { goQuote } from "../../schema/value/go-quote.ts";
import type { Attributes } from "../user.ts";

/**
 * Who may not do what, in Kubernetes' words, with what the authorizers said:
 * `User "x" cannot list resource "pods" in API group "" in the namespace "default": …`
 */
export function refusal(attributes: Attributes, reason = ""): string {
  const { user, verb, isResourceRequest, path, namespace, apiGroup } = attributes;
  const who = `User ${quoted(user.name)} cannot ${escaped(verb)}`;
  const why = reason === "" ? "" : `: ${reason}`;
  if (!isResourceRequest) return `${who} path ${quoted(path)}${why}`;
  const resource = quoted(combinedResource(attributes));
  const scope = namespace === "" ? "at the cluster scope" : `in the namespace ${quoted(namespace)}`;
  return `${who} resource ${resource} in API group ${quoted(apiGroup)} ${scope}${why}`;
}

/** `pods/log` */
export function combinedResource({ resource, subresource }: Attributes): string {
  return subresource === "" ? resource : `${resource}/${subresource}`;
}

/** As Go prints several errors as one: each once. */
export function aggregate(errors: readonly string[]): string {
  const unique = [...new Set(errors)];
  return unique.length === 1 ? unique[0]! : `[${unique.join(", ")}]`;
}

function quoted(text: string): string {
  return escaped(goQuote(text));
}

/** The text may end in a browser. */
export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
