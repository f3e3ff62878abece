import type { ApiObject } from "../../api/kind.ts";
import { applyDefaults as applySchemaDefaults } from "../../schema/defaults.ts";
import type { WriteRequest } from "./request.ts";

/** Sets the defaults of the schema, then those of the kind's strategy. */
export function applyDefaults<T extends ApiObject>(
  { registry, hasDefaults }: Pick<WriteRequest<T>, "registry" | "hasDefaults">,
  object: T,
): T {
  if (hasDefaults === true) return object;
  const { schema, strategy } = registry.kind;
  const defaulted = applySchemaDefaults(schema, object);
  return strategy.setDefaults?.(defaulted) ?? defaulted;
}
