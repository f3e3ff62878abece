/** For tests: the schemas that the modules of this room export, so that a new kind is tested unasked. */
import { readdirSync, readFileSync } from "node:fs";
import { type ObjectSchema, type Schema, schemaOf } from "../../schema/schema.ts";

const here = new URL("./", import.meta.url);

/** Every object schema that is exported, and every one that these hold, by name. Throws when two differ by more. */
export async function everySchema(): Promise<ReadonlyMap<string, ObjectSchema>> {
  const found = new Map<string, ObjectSchema>();
  for (const path of readdirSync(here, { recursive: true, encoding: "utf8" }).sort()) {
    if (!path.endsWith(".ts") || /\.(?:test|bench|fuzz)\.ts$/.test(path)) continue;
    if (!/\bobject\(/.test(readFileSync(new URL(path, here), "utf8"))) continue;
    const module = (await import(new URL(path, here).href)) as Readonly<Record<string, unknown>>;
    for (const value of Object.values(module)) if (isObjectSchema(value)) collect(value, found);
  }
  return found;
}

/** Those among them whose values stand alone: `kind` and `apiVersion` name them, outside of their protobuf form. */
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
