import { goQuote } from "../../schema/value/go-quote.ts";
import type { Attributes } from "../user.ts";

/**
 * Kubernetes' message for a denied request, with the reasons of the authorizers: `User "x" cannot list resource "pods"
 * in API group "" in the namespace "default": …`
 */
export function forbiddenMessage(attributes: Attributes, reason = ""): string {
  const { user, verb, isResourceRequest, path, namespace, apiGroup } = attributes;
  const who = `User ${quoteAndEscape(user.name)} cannot ${escapeHtml(verb)}`;
  const suffix = reason === "" ? "" : `: ${reason}`;
  if (!isResourceRequest) return `${who} path ${quoteAndEscape(path)}${suffix}`;
  const resource = quoteAndEscape(combinedResource(attributes));
  const scope = namespace === "" ? "at the cluster scope" : `in the namespace ${quoteAndEscape(namespace)}`;
  return `${who} resource ${resource} in API group ${quoteAndEscape(apiGroup)} ${scope}${suffix}`;
}

/** `pods/log` */
export function combinedResource({ resource, subresource }: Attributes): string {
  return subresource === "" ? resource : `${resource}/${subresource}`;
}

/** Formats several errors as Go does: each once. */
export function aggregateErrors(errors: readonly string[]): string {
  const unique = [...new Set(errors)];
  return unique.length === 1 ? unique[0]! : `[${unique.join(", ")}]`;
}

function quoteAndEscape(text: string): string {
  return escapeHtml(goQuote(text));
}

/** HTML-escapes the text, since it may be shown in a browser. */
export function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
