/** Scopes of quotas: a quota counts the objects that match all of its scopes. */
import type { ResourceQuota, ScopedResourceSelectorRequirement } from "../../../api/core/resource-quota/schema.ts";
import { matchesValue, type Requirement } from "../../../api/meta/selectors/selector.ts";

export type Scope = ScopedResourceSelectorRequirement;

/** A scope without an operator means Exists. */
export function scopesOf({ spec }: ResourceQuota): readonly Scope[] {
  const named = (spec?.scopes ?? []).map((scopeName): Scope => ({ scopeName, operator: "Exists" }));
  return [...named, ...(spec?.scopeSelector?.matchExpressions ?? [])];
}

/** For scopes with values; undefined if the object has no value. */
export function matchesScopeValue({ operator, values = [] }: Scope, value: string | undefined): boolean {
  return matchesValue({ operator: operator as Requirement["operator"], values }, value);
}

/** Formats scopes as Kubernetes does: `[{PriorityClass In [high low]}]`. */
export function formatScopes(scopes: readonly Scope[]): string {
  return `[${scopes.map(({ scopeName, operator, values = [] }) => `{${scopeName} ${operator} [${values.join(" ")}]}`).join(" ")}]`;
}
