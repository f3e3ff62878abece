/** Users and the interfaces of authentication and authorization. */
import type { PolicyRule } from "../api/rbac/policy-rule.ts";
import type { MaybePromise } from "../std/async/maybe-promise.ts";

export interface UserInfo {
  readonly name: string;
  /** Empty if the authenticator has none. */
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** More groups are compared by a set. */
const FEW_GROUPS = 16;
const groupSets = new WeakMap<readonly string[], ReadonlySet<string>>();

/** Whether the user is in the group. A token may have thousands of groups, and policies may name as many. */
export function isInGroup({ groups }: Pick<UserInfo, "groups">, group: string): boolean {
  if (groups.length <= FEW_GROUPS) return groups.includes(group);
  const set = groupSets.get(groups) ?? new Set(groups);
  groupSets.set(groups, set);
  return set.has(group);
}

/** The credentials of a request. */
export interface Credentials {
  /** The client certificate chain in DER, leaf first, not verified yet; empty if the client sent none. */
  readonly certificates: readonly Uint8Array[];
  /** The `Authorization` header as sent. */
  readonly authorization?: string | undefined;
  /** Any other header, by lower-case name. The values of a repeated header are joined. */
  header?(name: string): string | undefined;
  /** All values of a header as sent, so that values with commas stay whole. */
  headerValues?(name: string): readonly string[];
  /** The names of all headers, in lower case. */
  headerNames?(): readonly string[];
  /** Adds a warning to the response. */
  warn?(text: string): void;
  /** Adds an annotation to the audit event. */
  annotate?(key: string, value: string): void;
  /** The request path, since anonymous access may be limited to some paths. */
  readonly path?: string | undefined;
}

/** Undefined: the credentials are of another type. Throws an `InvalidCredentialsError` for invalid ones. */
export type Authenticator = (credentials: Credentials) => MaybePromise<UserInfo | undefined>;

export interface Attributes {
  readonly user: UserInfo;
  /** `get`, `list`, `watch`, `create`, … for resources; the HTTP method in lower case for paths. */
  readonly verb: string;
  readonly isResourceRequest: boolean;
  /** Empty for cluster-scoped requests. */
  readonly namespace: string;
  /** As the alias in the request: `coordination.svc.io` or `coordination.k8s.io`. */
  readonly apiGroup: string;
  readonly apiVersion: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  readonly path: string;
  /** As in the query; absent if the request has none. */
  readonly fieldSelector?: string | undefined;
  readonly labelSelector?: string | undefined;
}

export interface Authorization {
  readonly decision: "allow" | "deny" | "no-opinion";
  /** For the audit log and, if the request is denied, for the client. May be empty. */
  readonly reason: string;
  /** Why the authorizer could not decide. If no authorizer allows the request, the client gets a 500. */
  readonly error?: string | undefined;
}

export interface Authorizer {
  authorize(attributes: Attributes): MaybePromise<Authorization>;
  /**
   * The rules that apply to the user in the namespace, for SelfSubjectRulesReview. Absent if the authorizer has no
   * rules.
   */
  rulesFor?(user: UserInfo, namespace: string): UserRules;
}

export interface UserRules {
  readonly rules: readonly PolicyRule[];
  /** The user may have more permissions than these rules. */
  readonly incomplete: boolean;
  readonly error?: string | undefined;
}

export const ANONYMOUS = "system:anonymous";
export const AUTHENTICATED = "system:authenticated";
export const UNAUTHENTICATED = "system:unauthenticated";
export const MASTERS = "system:masters";
export const NODES = "system:nodes";
export const NODE_USER_PREFIX = "system:node:";

/** The values of a message, in which a list may be null. */
export function extraOf(extra: Readonly<Record<string, readonly string[] | null>>): UserInfo["extra"] {
  return Object.fromEntries(Object.entries(extra).map(([name, values]) => [name, values ?? []] as const));
}
