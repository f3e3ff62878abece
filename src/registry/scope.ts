import type { UserInfo } from "../auth/user.ts";

/** Namespace, group and user of a request. */
export interface Scope {
  /** Empty for cluster-scoped kinds, and for lists over all namespaces. */
  readonly namespace: string;
  /** The group as the request path names it; errors and managedFields use the same group alias. */
  readonly group: string;
  readonly user: UserInfo;
  readonly signal: AbortSignal;
}
