/**
 * From any JSON value to a value of a schema: types checked, unknown members dropped and named, nulls and empty
 * optional members left out, absent required ones zero, times and quantities in canonical text. Parts of custom
 * resources are only pruned (`prune.ts`). What comes out shares with what went in only raw and preserved members.
 */

import { type Member, membersOf } from "../members.ts";
import type {
  EitherSchema,
  Infer,
  IntegerSchema,
  ListSchema,
  MapSchema,
  ObjectSchema,
  Schema,
  SpecialSchema,
} from "../schema.ts";
import { depthMax } from "../value/limits.ts";
import { isPlainObject, setMember } from "../value/plain-object.ts";
import { canonicalizeQuantity, quantityHint } from "../value/quantity.ts";
import { canonicalizeTime, formatDuration, parseDuration } from "../value/time.ts";
import { isEmpty, zeroOf } from "../zero-value.ts";
import { unstructuredDecoder } from "./unstructured.ts";
import { type DecodeContext, type DecodeError, type Decoder, reportError, reportUnknown } from "./walk.ts";

export interface Decoded<T> {
  readonly value: T;
  /** Paths of members that the schema does not know, at most `reportsMax`. */
  readonly unknown: readonly string[];
  /** What could not be read at all; `value` is then incomplete. At most `reportsMax`. */
  readonly errors: readonly DecodeError[];
}

export interface DecodeOptions {
  /** `report` (the default) names unknown members, `drop` only drops them. */
  readonly unknownFields?: "drop" | "report";
}

export function decode<S extends Schema>(schema: S, value: unknown, options?: DecodeOptions): Decoded<Infer<S>> {
  const walk: DecodeContext = {
    steps: [],
    keys: [],
    structs: [],
    unknown: [],
    errors: [],
    report: options?.unknownFields !== "drop",
  };
  const result = decoderOf(schema)(value, walk);
  return { value: result as Infer<S>, unknown: walk.unknown, errors: walk.errors };
}

const decoders = new WeakMap<Schema, Decoder>();

function decoderOf(schema: Schema): Decoder {
  let decoder = decoders.get(schema);
  if (decoder === undefined) {
    decoder = compile(schema);
    decoders.set(schema, decoder);
  }
  return decoder;
}

function compile(schema: Schema): Decoder {
  if (schema.unstructured === true) return unstructuredDecoder(schema, decoderOf);
  switch (schema.type) {
    case "string":
    case "enum":
      return (value, walk) => (typeof value === "string" ? value : reportMismatch(value, "string", walk));
    case "boolean":
      return (value, walk) => (typeof value === "boolean" ? value : reportMismatch(value, "bool", walk));
    case "integer":
      return integer(schema);
    case "number":
      return (value, walk) => (typeof value === "number" ? value : reportMismatch(value, "float64", walk));
    case "bytes":
      return schema.as === "binary" ? binary : base64;
    case "special":
      return special(schema);
    case "raw":
      return (value) => (value === null ? undefined : value);
    case "list":
      return list(schema);
    case "map":
      return map(schema);
    case "object":
      return object(schema);
    case "either":
      return decodeEither(schema);
    default:
      return schema satisfies never;
  }
}

/** A number just below 2^63 cannot be told from it, and is refused with it. */
const largestInt64 = 2 ** 63 - 1024;
const largestUint64 = 2 ** 64 - 2048;

const ranges = {
  int32: [-2147483648, 2147483647],
  int64: [-(2 ** 63), largestInt64],
  uint32: [0, 4294967295],
  uint64: [0, largestUint64],
} as const;

function integer(schema: IntegerSchema): Decoder {
  const [least, most] = ranges[schema.width];
  return (value, walk) => {
    if (typeof value === "bigint") return schema.as === "bigint" ? value : Number(value);
    if (typeof value !== "number") return reportMismatch(value, schema.width, walk);
    if (!Number.isInteger(value) || value < least || value > most) {
      return reportMismatch(value, schema.width, walk, `number ${value}`);
    }
    return schema.as === "bigint" ? BigInt(value) : value;
  };
}

const base64Text = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function base64(value: unknown, walk: DecodeContext): unknown {
  if (value === null) return undefined;
  if (typeof value !== "string") return reportMismatch(value, "[]uint8", walk);
  if (base64Text.test(value)) return value;
  const dense = value.replace(/[\r\n]/g, "");
  if (base64Text.test(dense)) return dense;
  const stop = dense.search(/[^A-Za-z0-9+/]/);
  return reportError(
    walk,
    `illegal base64 data at input byte ${stop === -1 ? dense.length - (dense.length % 4) : stop}`,
  );
}

function binary(value: unknown, walk: DecodeContext): unknown {
  if (value instanceof Uint8Array) return value;
  const text = base64(value, walk);
  return typeof text === "string" ? Buffer.from(text, "base64") : undefined;
}

const sixDecimals = /\.\d{6}(?:Z|[-+])/;

function special(schema: SpecialSchema): Decoder {
  switch (schema.format) {
    case "time":
    case "microTime": {
      const micro = schema.format === "microTime";
      const layout = micro ? "2006-01-02T15:04:05.000000Z07:00" : "2006-01-02T15:04:05Z07:00";
      return (value, walk) => {
        if (value === null) return undefined;
        if (typeof value !== "string") return reportMismatch(value, "string", walk);
        // Microseconds must all be there; Go reads them by their layout.
        const canonical = micro && !sixDecimals.test(value) ? undefined : canonicalizeTime(value, micro);
        if (canonical !== undefined) return canonical;
        const quoted = JSON.stringify(value);
        return reportError(walk, `parsing time ${quoted} as "${layout}": cannot parse ${quoted} as "2006"`);
      };
    }
    case "duration":
      return (value, walk) => {
        if (value === null) return undefined;
        if (typeof value !== "string") return reportMismatch(value, "string", walk);
        const nanos = parseDuration(value);
        return nanos === undefined
          ? reportError(walk, `time: invalid duration ${JSON.stringify(value)}`)
          : formatDuration(nanos);
      };
    case "quantity":
      return (value, walk) => {
        if (value === null) return undefined;
        const text = typeof value === "number" ? String(value) : value;
        if (typeof text !== "string") return reportError(walk, quantityHint);
        return canonicalizeQuantity(text, schema.milli) ?? reportError(walk, quantityHint);
      };
    case "intOrString":
      return (value, walk) => {
        if (typeof value === "string") return value;
        return typeof value === "number" && Number.isInteger(value) && value >= -2147483648 && value <= 2147483647
          ? value
          : reportMismatch(value, "int32", walk);
      };
    default:
      return schema.format satisfies never;
  }
}

function list(schema: ListSchema): Decoder {
  let item: Decoder | undefined;
  return (value, walk) => {
    if (value === null) return undefined;
    if (!Array.isArray(value)) return reportMismatch(value, `[]${goType(schema.items)}`, walk);
    item ??= decoderOf(schema.items);
    const items: unknown[] = [];
    for (let position = 0; position < value.length; position++) {
      walk.steps.push(position);
      items.push(itemOf(schema.items, item, value[position], walk));
      walk.steps.pop();
    }
    return items;
  };
}

function map(schema: MapSchema): Decoder {
  let member: Decoder | undefined;
  return (value, walk) => {
    if (value === null) return undefined;
    if (!isPlainObject(value)) return reportMismatch(value, `map[string]${goType(schema.values)}`, walk);
    member ??= decoderOf(schema.values);
    const members: Record<string, unknown> = {};
    walk.keys.push(walk.steps.length);
    for (const name of Object.keys(value)) {
      walk.steps.push(name);
      setMember(members, name, itemOf(schema.values, member, value[name], walk));
      walk.steps.pop();
    }
    walk.keys.pop();
    return members;
  };
}

/** An item that is null or cannot be read is zero: a list keeps its places. */
function itemOf(schema: Schema, decode: Decoder, value: unknown, walk: DecodeContext): unknown {
  const decoded = value === null ? undefined : decode(value, walk);
  if (decoded !== undefined) return decoded;
  return schema.type === "object" ? decode({}, walk) : zeroOf(schema);
}

/** Go reads each of these by itself: what is not known is dropped unreported, another form leaves a list empty. */
function decodeEither(schema: EitherSchema): Decoder {
  return (value, walk) => {
    if (value === null) return undefined;
    const quiet = walk.report ? { ...walk, report: false } : walk;
    if (typeof value === "boolean" && schema.boolean !== undefined) return value;
    if (Array.isArray(value) && schema.list !== undefined) return decoderOf(schema.list.schema())(value, quiet);
    if (isPlainObject(value)) return decoderOf(schema.object.schema())(value, quiet);
    return schema.list === undefined ? reportError(walk, schema.expected) : [];
  };
}

interface Slot {
  readonly member: Member;
  readonly decode: Decoder;
}

function object(schema: ObjectSchema): Decoder {
  let slots: ReadonlyMap<string, Slot> | undefined;
  let required: readonly Slot[] = [];
  const goName = schema.name.slice(schema.name.lastIndexOf(".") + 1);
  return (value, walk) => {
    if (value === null) return undefined;
    if (slots === undefined) {
      const all = membersOf(schema).map((member) => ({ member, decode: decoderOf(member.schema) }));
      slots = new Map(all.map((slot) => [slot.member.name, slot]));
      required = all.filter(({ member: { field } }) => field.presence === "required" && field.nilable !== true);
    }
    if (!isPlainObject(value)) return reportMismatch(value, goType(schema), walk);
    if (walk.structs.length >= depthMax) return reportError(walk, "exceeded max depth");
    walk.structs.push(goName);
    const members: Record<string, unknown> = {};
    for (const name of Object.keys(value)) {
      const slot = slots.get(name);
      walk.steps.push(name);
      if (slot === undefined) {
        reportUnknown(walk);
      } else if (value[name] !== null) {
        const decoded = slot.decode(value[name], walk);
        if (decoded !== undefined && !isEmpty(slot.member, decoded)) members[name] = decoded;
      }
      walk.steps.pop();
    }
    for (const slot of required) {
      if (members[slot.member.name] === undefined) fillRequired(members, slot, walk);
    }
    walk.structs.pop();
    return members;
  };
}

/** Required members are always there, as in Go, where an absent one is its zero. Times have no zero to show. */
function fillRequired(members: Record<string, unknown>, { member, decode }: Slot, walk: DecodeContext): void {
  const zero = member.schema.type === "object" ? decode({}, walk) : zeroOf(member.schema);
  if (zero !== null) members[member.name] = zero;
}

function goType(schema: Schema): string {
  switch (schema.type) {
    case "object":
      return schema.name.slice(schema.name.lastIndexOf("/") + 1);
    case "boolean":
      return "bool";
    case "integer":
      return schema.width;
    case "list":
      return `[]${goType(schema.items)}`;
    case "map":
      return `map[string]${goType(schema.values)}`;
    case "bytes":
      return "[]uint8";
    default:
      return "string";
  }
}

function reportMismatch(value: unknown, expected: string, walk: DecodeContext, found = jsonType(value)): undefined {
  if (value === null) return undefined;
  const struct = walk.structs.at(-1);
  const path = walk.steps.filter((step, index) => typeof step === "string" && !walk.keys.includes(index)).join(".");
  const where = struct === undefined ? "Go value" : `Go struct field ${struct}.${path}`;
  return reportError(walk, `json: cannot unmarshal ${found} into ${where} of type ${expected}`);
}

function jsonType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}
