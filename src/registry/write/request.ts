/** One write, as all of its steps receive it. */
import type { AdmissionChain, AdmissionContext } from "../../admission/chain/chain.ts";
import type { ApiObject, SubresourceStrategy, SubresourceView } from "../../api/kind.ts";
import type { Preconditions } from "../../storage/object-store.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";

export interface WriteRequest<T extends ApiObject = ApiObject> {
  readonly registry: Registry<T>;
  readonly scope: Scope;
  /** Empty for a create: the object has a name, or gets a generated one. */
  readonly name: string;
  readonly options: WriteOptions<T>;
  /** Whether the object is derived from the stored one, so that `applyDefaults` is skipped. */
  readonly hasDefaults?: boolean;
  /** Whether server-side apply has computed the managedFields, so that `trackManagedFields` is skipped. */
  readonly hasManagedFields?: boolean;
}

export interface WriteOptions<T extends ApiObject = ApiObject> extends FieldManagerOptions {
  /** Runs all steps but the last: nothing is stored. */
  readonly dryRun?: boolean | undefined;
  /** Absent for the server's own writes: they run no admission plugins. */
  readonly admission?: Admission | undefined;
  readonly checkEscalation?: EscalationCheck | undefined;
  /** Called before an update or apply creates the object; throws when the user may not create it. */
  readonly authorizeCreate?: (() => Promise<void>) | undefined;
  /** Receives the texts of Warning headers. A retried update reports its warnings again. */
  readonly warn?: ((texts: readonly string[]) => void) | undefined;
  /** Checked against the stored object. */
  readonly preconditions?: Preconditions | undefined;
  /** Set for an update through a subresource such as `status`: it replaces the kind's own strategy. */
  readonly subresourceStrategy?: SubresourceStrategy<T> | undefined;
  /** Set where the subresource is another kind (Scale): admission plugins receive the object as that kind. */
  readonly view?: SubresourceView<T> | undefined;
}

/** Which manager owns the fields that a write changes. */
export interface FieldManagerOptions {
  /** Managed fields are not tracked when absent. */
  readonly fieldManager?: string | undefined;
  /** The subresource that the write goes through; empty or absent for none. */
  readonly subresource?: string | undefined;
}

/** The admission chain, and the attributes of the request that plugins read. */
export interface Admission {
  readonly chain: AdmissionChain;
  readonly context: AdmissionContext;
}

/** Throws when the object grants permissions that the user does not have (RBAC roles and bindings). */
export type EscalationCheck = (scope: Scope, next: ApiObject, previous: ApiObject | undefined) => Promise<void>;
