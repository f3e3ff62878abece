/** Scopes of quotas: a quota counts the objects that lie within all of its own. */
import type { ResourceQuota, ScopedResourceSelectorRequirement } from "../../../api/core/resource-quota/schema.ts";
import { meets, type Requirement } from "../../../api/meta/selectors/selector.ts";

export type Scope = ScopedResourceSelectorRequirement;

/** A scope that is only named has to be there. */
export function scopesOf({ spec }: ResourceQuota): readonly Scope[] {
  const named = (spec?.scopes ?? []).map((scopeName): Scope => ({ scopeName, operator: "Exists" }));
  return [...named, ...(spec?.scopeSelector?.matchExpressions ?? [])];
}

/** For scopes that have values; undefined is an object without one. */
export function meetsScope({ operator, values = [] }: Scope, value: string | undefined): boolean {
  return meets({ operator: operator as Requirement["operator"], values }, value);
}

/** As Kubernetes prints lists of them: `[{PriorityClass In [high low]}]`. */
export function scopesText(scopes: readonly Scope[]): string {
  return `[${scopes.map(({ scopeName, operator, values = [] }) => `{${scopeName} ${operator} [${values.join(" ")}]}`).join(" ")}]`;
}
