/** The interface of quota evaluators: what quotas count of the objects of a kind. */
import type { ScopedResourceSelectorRequirement } from "../../../api/core/resource-quota/schema.ts";
import type { ResourceQuantities } from "../../../api/core/resources/quantities.ts";
import type { ApiObject } from "../../../api/kind.ts";
import type { Operation } from "../../chain/attributes.ts";

export interface Evaluator<T extends ApiObject = ApiObject> {
  /** Whether such a request may change the usage. */
  handles(operation: Operation, subresource: string): boolean;
  /** All objects have the same usage, so their content is not needed. */
  readonly isUniform: boolean;
  /** Whether the evaluator counts this resource. */
  counts(resource: string): boolean;
  /** The usage of one object. Resources that are not in the map are not used. */
  usage(object: T): ResourceQuantities;
  /** Whether the object matches a scope. */
  matchesScope(scope: ScopedResourceSelectorRequirement, object: T): boolean;
  /** An error if the object does not specify a resource that is limited. */
  missing?(object: T, limited: readonly string[]): string | undefined;
}
