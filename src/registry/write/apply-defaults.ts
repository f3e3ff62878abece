import type { ApiObject } from "../../api/kind.ts";
import { applyDefaults as applySchemaDefaults } from "../../schema/defaults.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { TooManyValuesError } from "../../schema/value/limits.ts";
import type { WriteRequest } from "./request.ts";

/**
 * Sets the defaults of the schema, then those of the kind's strategy. Throws a `TooManyValuesError` when they add too
 * many values, unless those of the stored object do as well: then the object stays without them, as when it is read.
 */
export function applyDefaults<T extends ApiObject>(
  { registry, hasDefaults }: Pick<WriteRequest<T>, "registry" | "hasDefaults">,
  object: T,
  previous?: T,
): T {
  if (hasDefaults === true) return object;
  const { schema, strategy } = registry.kind;
  const defaulted = setSchemaDefaults(schema, object, previous);
  return strategy.setDefaults?.(defaulted, registry.features) ?? defaulted;
}

function setSchemaDefaults<T>(schema: ObjectSchema, object: T, previous: T | undefined): T {
  try {
    return applySchemaDefaults(schema, object);
  } catch (error) {
    if (previous === undefined || !(error instanceof TooManyValuesError)) throw error;
    if (hasTooManyDefaults(schema, previous)) return object;
    throw error;
  }
}

function hasTooManyDefaults(schema: ObjectSchema, stored: unknown): boolean {
  try {
    applySchemaDefaults(schema, stored);
    return false;
  } catch (error) {
    return error instanceof TooManyValuesError;
  }
}
