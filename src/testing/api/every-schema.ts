/** The schemas that the modules of src/api export: tests of every kind find a new kind without further work. */
import { readdirSync, readFileSync } from "node:fs";
import { type ObjectSchema, type Schema, schemaOf } from "../../schema/schema.ts";

const folder = new URL("../../api/", import.meta.url);

/** Every exported object schema and every schema nested in one, by name. Throws when two schemas share a name. */
export async function everySchema(): Promise<ReadonlyMap<string, ObjectSchema>> {
  const found = new Map<string, ObjectSchema>();
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" }).sort()) {
    if (!path.endsWith(".ts") || /\.(?:test|bench|fuzz)\.ts$/.test(path)) continue;
    if (!/\bobject\(/.test(readFileSync(new URL(path, folder), "utf8"))) continue;
    const module = (await import(new URL(path, folder).href)) as Readonly<Record<string, unknown>>;
    for (const value of Object.values(module)) if (isObjectSchema(value)) collect(value, found);
  }
  return found;
}

/** The schemas of top-level types, which have `kind` and `apiVersion` (field number 0: absent from protobuf). */
export async function topLevelSchemas(): Promise<ReadonlyMap<string, ObjectSchema>> {
  return new Map([...(await everySchema())].filter(([, { fields }]) => fields.kind?.number === 0));
}

function isObjectSchema(value: unknown): value is ObjectSchema {
  return typeof value === "object" && value !== null && "type" in value && value.type === "object" && "syntax" in value;
}

function collect(schema: Schema, found: Map<string, ObjectSchema>): void {
  if (schema.type === "list") collect(schema.items, found);
  else if (schema.type === "map") collect(schema.values, found);
  if (schema.type !== "object") return;
  const known = found.get(schema.name);
  if (known === schema) return;
  if (known !== undefined) throw new Error(`Two schemas are named ${schema.name}`);
  found.set(schema.name, schema);
  for (const field of Object.values(schema.fields)) collect(schemaOf(field), found);
}
