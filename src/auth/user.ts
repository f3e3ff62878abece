/** Who asks, what for, and the two interfaces that answer: `Authenticator` and `Authorizer`. */
import type { PolicyRule } from "../api/rbac/policy-rule.ts";
import type { MaybePromise } from "../std/async/maybe-promise.ts";

export interface UserInfo {
  readonly name: string;
  /** Empty when the authenticator knows none. */
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** What a request offers to prove who sent it. */
export interface Credentials {
  /** The TLS client certificate chain in DER, leaf first, not yet verified; empty when none was offered. */
  readonly certificates: readonly Uint8Array[];
  /** The `Authorization` header as it came. */
  readonly authorization?: string | undefined;
  /** Any other header, by lower-case name; one that was repeated is one text. */
  header?(name: string): string | undefined;
  /** Every value of a header, as sent: values that hold commas stay whole. */
  headerValues?(name: string): readonly string[];
  /** Of all headers, in lower case. */
  headerNames?(): readonly string[];
  /** Tells the client something beside the answer. */
  warn?(text: string): void;
  /** Tells the audit log something. */
  annotate?(key: string, value: string): void;
  /** Path asked for, since anonymous access may be limited to some. */
  readonly path?: string | undefined;
}

/** Undefined: these credentials mean nothing to it. Throws a `Refusal` for credentials it knows to be bad. */
export type Authenticator = (credentials: Credentials) => MaybePromise<UserInfo | undefined>;

export interface Attributes {
  readonly user: UserInfo;
  /** `get`, `list`, `watch`, `create`, … for resources; the HTTP method in lower case for paths. */
  readonly verb: string;
  readonly isResourceRequest: boolean;
  /** Empty for cluster-wide requests. */
  readonly namespace: string;
  /** As the request spelled it: `coordination.svc.io` or `coordination.k8s.io`. */
  readonly apiGroup: string;
  readonly apiVersion: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  readonly path: string;
  /** As in the query; absent when the request has none. */
  readonly fieldSelector?: string | undefined;
  readonly labelSelector?: string | undefined;
}

export interface Authorization {
  readonly decision: "allow" | "deny" | "no-opinion";
  /** For the audit log and, when not allowed, for the client. May be empty. */
  readonly reason: string;
  /** What kept it from finding out. Who is not allowed after all is told that the server failed. */
  readonly error?: string | undefined;
}

export interface Authorizer {
  authorize(attributes: Attributes): Promise<Authorization>;
  /** What it would allow the user in the namespace, for people who ask. Absent where it never allows by rules. */
  rulesFor?(user: UserInfo, namespace: string): UserRules;
}

export interface UserRules {
  readonly rules: readonly PolicyRule[];
  /** There may be more that the user is allowed. */
  readonly incomplete: boolean;
  readonly error?: string | undefined;
}

export const ANONYMOUS = "system:anonymous";
export const AUTHENTICATED = "system:authenticated";
export const UNAUTHENTICATED = "system:unauthenticated";
export const MASTERS = "system:masters";
export const NODES = "system:nodes";
export const NODE_USER_PREFIX = "system:node:";
