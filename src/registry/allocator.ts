/** The interface to what allocates unique values for objects of a kind: cluster IPs and node ports of Services. */
import type { ApiObject } from "../api/kind.ts";
import type { Scope } from "./scope.ts";

export interface Allocator<T extends ApiObject = ApiObject> {
  /**
   * Called with an object before its strategy prepares it; `previous` is undefined on create. A dry run allocates
   * nothing. Throws a `StatusError` when a value is not available.
   */
  allocate(scope: Scope, next: T, previous: T | undefined, dryRun: boolean): Promise<Allocation<T>>;
  /** Called with a deleted object. Does not throw: what it fails to release is released at the next start. */
  release(scope: Scope, object: T): Promise<void>;
}

/** What was allocated for one write. Exactly one of its functions is called, once. Neither throws. */
export interface Allocation<T extends ApiObject = ApiObject> {
  readonly object: T;
  /** Called when the object is stored: releases what the object no longer uses. */
  commit(stored: T): Promise<void>;
  /** Called when the write failed: releases what was allocated for it. */
  rollback(): Promise<void>;
}
