/** Derives a version of a kind that differs from another in its name only. */
import { type ListSchema, type MapSchema, type ObjectSchema, type Schema, schemaOf } from "../schema/schema.ts";
import { type ApiObject, type Kind, storageKindOf } from "./kind.ts";

export interface VersionLifecycle {
  /** The Kubernetes release that introduced the version: `1.31`. */
  readonly since: string;
  readonly deprecation?: string;
}

/** Returns `kind` in `version`, with its fields. The store holds one version of both. */
export function otherVersionOf<T extends ApiObject>(
  kind: Kind<T>,
  version: string,
  lifecycle: VersionLifecycle,
): Kind<T> {
  const [group = ""] = kind.group.split(".");
  const rename = createRenamer((name) => name.replace(`${group}/${kind.version}.`, `${group}/${version}.`));
  const storageKind = storageKindOf(kind);
  return {
    ...kind,
    ...lifecycle,
    version,
    schema: rename(kind.schema) as Kind["schema"],
    conversion: { storageKind, toStorage: (object) => object, fromStorage: (object) => object as T },
  };
}

/** Returns a function that copies a schema with its nested schemas, and renames each. */
function createRenamer(rename: (name: string) => string): (schema: Schema) => Schema {
  const copies = new Map<Schema, Schema>();
  const visit = (schema: Schema): Schema => {
    const existing = copies.get(schema);
    if (existing !== undefined) return existing;
    const copy = copySchema(schema, visit, rename);
    copies.set(schema, copy);
    return copy;
  };
  return visit;
}

function copySchema(schema: Schema, visit: (schema: Schema) => Schema, rename: (name: string) => string): Schema {
  switch (schema.type) {
    case "object": {
      const fields = Object.entries(schema.fields).map(([name, field]) => {
        return [name, { ...field, schema: visit(schemaOf(field)) }];
      });
      return { ...schema, name: rename(schema.name), fields: Object.fromEntries(fields) } satisfies ObjectSchema;
    }
    case "list":
      return { ...schema, items: visit(schema.items) } satisfies ListSchema;
    case "map":
      return { ...schema, values: visit(schema.values) } satisfies MapSchema;
    default:
      return schema;
  }
}
