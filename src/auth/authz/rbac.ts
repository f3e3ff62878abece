import type { Attributes, Authorizer, UserInfo } from "../user.ts";

export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  /** `pods`, `pods/log`, `*&#47;status`, `*`. */
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  /** `/healthz`, `/apis/*`. */
  readonly nonResourceURLs?: readonly string[];
}

/** Where rules come from: the bootstrap policy, later the roles and bindings that are stored. */
export interface RuleSource {
  /** Rules the user has in every namespace, and those of `namespace` when it is not empty. */
  rulesFor(user: UserInfo, namespace: string): Iterable<PolicyRule>;
}

export declare function rbacAuthorizer(source: RuleSource): Authorizer;
export declare function ruleAllows(rule: PolicyRule, attributes: Attributes): boolean;
