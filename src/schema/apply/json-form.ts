/**
 * A value as its JSON has it: empty optional members left out, those that Go always writes filled in with their zero.
 * Fields are counted on this form, so that what stands there anyway is nobody's field.
 */

import { absentText, isEmptyValue, isWrittenEmpty } from "../json/encode.ts";
import { type Member, membersOf } from "../members.ts";
import type { ObjectSchema, Schema } from "../schema.ts";
import { deepFreeze } from "../value/freeze.ts";

/** The value itself when it reads the same; it shares with the value what does not change. */
export function jsonForm(schema: Schema, value: unknown): unknown {
  return formerOf(schema)(value);
}

type Former = (value: unknown) => unknown;

const formers = new WeakMap<Schema, Former>();
const asItIs: Former = (value) => value;

function formerOf(schema: Schema): Former {
  let former = formers.get(schema);
  if (former === undefined) {
    former = compile(schema);
    formers.set(schema, former);
  }
  return former;
}

function compile(schema: Schema): Former {
  switch (schema.type) {
    case "object":
      return schema.unstructured === true ? asItIs : object(schema);
    case "list":
      return containsObjects(schema.items) ? list(() => formerOf(schema.items)) : asItIs;
    case "map":
      return containsObjects(schema.values) ? map(() => formerOf(schema.values)) : asItIs;
    default:
      return asItIs;
  }
}

function containsObjects(schema: Schema): boolean {
  if (schema.type === "list") return containsObjects(schema.items);
  return schema.type === "map" ? containsObjects(schema.values) : schema.type === "object";
}

interface Slot {
  readonly name: string;
  readonly form: Former;
  /** Whether an empty value is written. */
  readonly always: boolean;
  /** What is written for a member that is absent; undefined is nothing. */
  readonly absent: () => unknown;
}

function object(schema: ObjectSchema): Former {
  let slots: readonly Slot[] | undefined;
  return (value) => {
    if (typeof value !== "object" || value === null) return value;
    slots ??= membersOf(schema).map((member) => ({
      name: member.name,
      form: formerOf(member.schema),
      always: isWrittenEmpty(member),
      absent: absentValue(member),
    }));
    const members = value as Readonly<Record<string, unknown>>;
    let result: Record<string, unknown> | undefined;
    for (const slot of slots) {
      const member = members[slot.name];
      const next = formed(slot, member);
      if (next === member) continue;
      result ??= { ...members };
      if (next === undefined) delete result[slot.name];
      else result[slot.name] = next;
    }
    return result ?? value;
  };
}

function absentValue(member: Member): () => unknown {
  const text = absentText(member);
  let value: unknown;
  let known = false;
  return () => {
    if (!known) {
      const json = text();
      value = json === undefined ? undefined : deepFreeze(JSON.parse(json) as unknown);
      known = true;
    }
    return value;
  };
}

function formed({ form, always, absent }: Slot, member: unknown): unknown {
  if (member === undefined || member === null) return absent();
  return always || !isEmptyValue(member) ? form(member) : undefined;
}

function list(items: () => Former): Former {
  let item: Former | undefined;
  return (value) => {
    if (!Array.isArray(value)) return value;
    item ??= items();
    let result: unknown[] | undefined;
    for (let place = 0; place < value.length; place++) {
      const next = item(value[place]);
      if (next === value[place]) continue;
      result ??= [...value];
      result[place] = next;
    }
    return result ?? value;
  };
}

function map(values: () => Former): Former {
  let member: Former | undefined;
  return (value) => {
    if (typeof value !== "object" || value === null) return value;
    member ??= values();
    let result: Record<string, unknown> | undefined;
    for (const [name, was] of Object.entries(value)) {
      const next = member(was);
      if (next === was) continue;
      result ??= { ...value };
      result[name] = next;
    }
    return result ?? value;
  };
}
