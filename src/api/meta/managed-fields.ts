import type { ApiObject } from "../kind.ts";

/** The object without its managed fields, which are half of a small object. */
export function dropManagedFields<T extends ApiObject>(object: T): T {
  const { managedFields, ...metadata } = object.metadata ?? {};
  return managedFields === undefined ? object : { ...object, metadata };
}
