/** The members of an object type: embedded structs flattened, lazy schemas resolved. */
import { type Field, type ObjectSchema, type Schema, schemaOf } from "./schema.ts";

export interface Member {
  readonly name: string;
  readonly field: Field;
  readonly schema: Schema;
}

const cache = new WeakMap<ObjectSchema, readonly Member[]>();
const byName = new WeakMap<ObjectSchema, ReadonlyMap<string, Member>>();

/** In the order of the JSON encoding; members of an embedded struct take the struct's position. */
export function membersOf(schema: ObjectSchema): readonly Member[] {
  let members = cache.get(schema);
  if (members === undefined) {
    members = Object.entries(schema.fields).flatMap(([name, field]) => {
      const target = schemaOf(field);
      return field.inline === true && target.type === "object" ? membersOf(target) : [{ name, field, schema: target }];
    });
    cache.set(schema, members);
  }
  return members;
}

export function memberOf(schema: ObjectSchema, name: string): Member | undefined {
  let index = byName.get(schema);
  if (index === undefined) {
    index = new Map(membersOf(schema).map((member) => [member.name, member]));
    byName.set(schema, index);
  }
  return index.get(name);
}
