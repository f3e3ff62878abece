/**
 * Decodes any JSON value into a value of a schema: checks types, drops and reports unknown members, omits nulls and
 * empty optional members, sets absent required members to zero, converts times and quantities to canonical text. Parts
 * of custom resources are only pruned (`unstructured.ts`). The result shares only raw and preserved members with the
 * input.
 */

import { NumberLiteral, numberOf, withoutLiterals } from "../json/exact-numbers.ts";
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
import { explainTimeError } from "../value/time-error.ts";
import { isEmpty, zeroOf } from "../zero-value.ts";
import { type DecodeContext, type DecodeError, type Decoder, reportError, reportUnknown } from "./context.ts";
import { unstructuredDecoder } from "./unstructured.ts";

export interface DecodeResult<T> {
  readonly value: T;
  /** Paths of unknown members, at most `reportedErrorsMax`. */
  readonly unknown: readonly string[];
  /** Values of the wrong type; `value` is then incomplete. At most `reportedErrorsMax`. */
  readonly errors: readonly DecodeError[];
}

export interface DecodeOptions {
  /** `report` (the default) reports unknown members, `drop` only drops them. */
  readonly unknownFields?: "drop" | "report";
  /** The value can contain a `NumberLiteral`: integers accept no other spelling, as in Go. */
  readonly literals?: boolean | undefined;
}

export function decode<S extends Schema>(schema: S, value: unknown, options?: DecodeOptions): DecodeResult<Infer<S>> {
  const context: DecodeContext = {
    steps: [],
    keys: [],
    structs: [],
    unknown: [],
    errors: [],
    report: options?.unknownFields !== "drop",
    literals: options?.literals === true,
  };
  const result = decoderOf(schema)(value, context);
  return { value: result as Infer<S>, unknown: context.unknown, errors: context.errors };
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
      return (value, context) => (typeof value === "string" ? value : reportMismatch(value, "string", context));
    case "boolean":
      return (value, context) => (typeof value === "boolean" ? value : reportMismatch(value, "bool", context));
    case "integer":
      return integerDecoder(schema);
    case "number":
      return (value, context) => {
        if (value instanceof NumberLiteral) return numberOf(value.source);
        return typeof value === "number" || typeof value === "bigint"
          ? value
          : reportMismatch(value, "float64", context);
      };
    case "bytes":
      return schema.as === "binary" ? decodeBinary : decodeBase64;
    case "special":
      return specialDecoder(schema);
    case "raw":
      return (value, context) => {
        if (value === null) return undefined;
        return context.literals ? withoutLiterals(value) : value;
      };
    case "list":
      return listDecoder(schema);
    case "map":
      return mapDecoder(schema);
    case "object":
      return objectDecoder(schema);
    case "either":
      return eitherDecoder(schema);
    default:
      return schema satisfies never;
  }
}

/** Doubles have no value between these and 2^63 or 2^64, which are out of range. */
const largestInt64 = 2 ** 63 - 1024;
const largestUint64 = 2 ** 64 - 2048;

const ranges = {
  int32: [-2147483648, 2147483647],
  int64: [-(2 ** 63), largestInt64],
  uint32: [0, 4294967295],
  uint64: [0, largestUint64],
} as const;

function integerDecoder(schema: IntegerSchema): Decoder {
  const [least, most] = ranges[schema.width];
  return (value, context) => {
    if (value instanceof NumberLiteral) {
      return reportMismatch(value, schema.width, context, `number ${value.source}`);
    }
    if (typeof value === "bigint") return decodeBigInt(value, schema, context);
    if (typeof value !== "number") return reportMismatch(value, schema.width, context);
    if (!Number.isInteger(value) || value < least || value > most) {
      return reportMismatch(value, schema.width, context, `number ${value}`);
    }
    return schema.as === "bigint" ? BigInt(value) : value;
  };
}

/** Names a number with its text, another value by its type. */
function jsonNumber(value: unknown): string {
  if (value instanceof NumberLiteral) return `number ${value.source}`;
  return typeof value === "number" || typeof value === "bigint" ? `number ${value}` : jsonType(value);
}

/** Integers of Kubernetes' kinds are numbers in memory, rounded beyond 2^53 to one within 64 bits. */
function decodeBigInt(value: bigint, { as, width }: IntegerSchema, context: DecodeContext): unknown {
  if (as === "bigint") return value;
  const [least, most] = ranges[width];
  if (width === "int64") return Math.max(least, Math.min(Number(value), most));
  if (width === "uint64" && value >= 0n) return Math.min(Number(value), most);
  return reportMismatch(Number(value), width, context, `number ${value}`);
}

const base64Text = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function decodeBase64(value: unknown, context: DecodeContext): unknown {
  if (value === null) return undefined;
  if (typeof value !== "string") return reportMismatch(value, "[]uint8", context);
  if (base64Text.test(value)) return value;
  const dense = value.replace(/[\r\n]/g, "");
  if (base64Text.test(dense)) return dense;
  const stop = dense.search(/[^A-Za-z0-9+/]/);
  return reportError(
    context,
    `illegal base64 data at input byte ${stop === -1 ? dense.length - (dense.length % 4) : stop}`,
  );
}

function decodeBinary(value: unknown, context: DecodeContext): unknown {
  if (value instanceof Uint8Array) return value;
  const text = decodeBase64(value, context);
  return typeof text === "string" ? Buffer.from(text, "base64") : undefined;
}

const sixDecimals = /\.\d{6}(?:Z|[-+])/;

function specialDecoder(schema: SpecialSchema): Decoder {
  switch (schema.format) {
    case "time":
    case "microTime": {
      const micro = schema.format === "microTime";
      return (value, context) => {
        if (value === null) return undefined;
        if (typeof value !== "string") return reportMismatch(value, "string", context);
        // Go's layout requires all six decimals.
        const canonical = micro && !sixDecimals.test(value) ? undefined : canonicalizeTime(value, micro);
        return canonical ?? reportError(context, explainTimeError(value, micro));
      };
    }
    case "duration":
      return (value, context) => {
        if (value === null) return undefined;
        if (typeof value !== "string") return reportMismatch(value, "string", context);
        const nanos = parseDuration(value);
        return nanos === undefined
          ? reportError(context, `time: invalid duration ${JSON.stringify(value)}`)
          : formatDuration(nanos);
      };
    case "quantity":
      return (value, context) => {
        if (value === null) return undefined;
        const text = value instanceof NumberLiteral ? value.source : typeof value === "number" ? String(value) : value;
        if (typeof text !== "string") return reportError(context, quantityHint);
        return canonicalizeQuantity(text, schema.milli) ?? reportError(context, quantityHint);
      };
    case "intOrString":
      return (value, context) => {
        if (typeof value === "string") return value;
        return typeof value === "number" && Number.isInteger(value) && value >= -2147483648 && value <= 2147483647
          ? value
          : reportMismatch(value, "int32", context, jsonNumber(value));
      };
    default:
      return schema.format satisfies never;
  }
}

function listDecoder(schema: ListSchema): Decoder {
  let item: Decoder | undefined;
  return (value, context) => {
    if (value === null) return undefined;
    if (!Array.isArray(value)) return reportMismatch(value, `[]${goType(schema.items)}`, context);
    item ??= decoderOf(schema.items);
    const items: unknown[] = [];
    for (let position = 0; position < value.length; position++) {
      context.steps.push(position);
      items.push(decodeItem(schema.items, item, value[position], context));
      context.steps.pop();
    }
    return items;
  };
}

function mapDecoder(schema: MapSchema): Decoder {
  let member: Decoder | undefined;
  return (value, context) => {
    if (value === null) return undefined;
    if (!isObject(value)) return reportMismatch(value, `map[string]${goType(schema.values)}`, context);
    member ??= decoderOf(schema.values);
    const members: Record<string, unknown> = {};
    context.keys.push(context.steps.length);
    for (const name of Object.keys(value)) {
      context.steps.push(name);
      setMember(members, name, decodeItem(schema.values, member, value[name], context));
      context.steps.pop();
    }
    context.keys.pop();
    return members;
  };
}

/** An item that is null or invalid becomes zero, so that a list keeps its length. */
function decodeItem(schema: Schema, decode: Decoder, value: unknown, context: DecodeContext): unknown {
  const decoded = value === null ? undefined : decode(value, context);
  if (decoded !== undefined) return decoded;
  return schema.type === "object" ? decode({}, context) : zeroOf(schema);
}

/** These types have custom decoders in Go: unknown members are not reported, another type leaves a list empty. */
function eitherDecoder(schema: EitherSchema): Decoder {
  return (value, context) => {
    if (value === null) return undefined;
    const quiet = context.report ? { ...context, report: false } : context;
    if (typeof value === "boolean" && schema.boolean !== undefined) return value;
    if (Array.isArray(value) && schema.list !== undefined) return decoderOf(schema.list.schema())(value, quiet);
    if (isObject(value)) return decoderOf(schema.object.schema())(value, quiet);
    return schema.list === undefined ? reportError(context, schema.expected) : [];
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return isPlainObject(value) && !(value instanceof NumberLiteral);
}

interface Slot {
  readonly member: Member;
  readonly decode: Decoder;
}

function objectDecoder(schema: ObjectSchema): Decoder {
  let slots: ReadonlyMap<string, Slot> | undefined;
  let required: readonly Slot[] = [];
  const goName = schema.name.slice(schema.name.lastIndexOf(".") + 1);
  return (value, context) => {
    if (value === null) return undefined;
    if (slots === undefined) {
      const all = membersOf(schema).map((member) => ({ member, decode: decoderOf(member.schema) }));
      slots = new Map(all.map((slot) => [slot.member.name, slot]));
      required = all.filter(({ member: { field } }) => field.presence === "required" && field.nilable !== true);
    }
    if (!isObject(value)) return reportMismatch(value, goType(schema), context);
    if (context.structs.length >= depthMax) return reportError(context, "exceeded max depth");
    context.structs.push(goName);
    const members: Record<string, unknown> = {};
    for (const name of Object.keys(value)) {
      const slot = slots.get(name);
      context.steps.push(name);
      if (slot === undefined) {
        reportUnknown(context);
      } else if (value[name] !== null) {
        const decoded = slot.decode(value[name], context);
        if (decoded !== undefined && !isEmpty(slot.member, decoded)) members[name] = decoded;
      }
      context.steps.pop();
    }
    for (const slot of required) {
      if (members[slot.member.name] === undefined) fillRequired(members, slot, context);
    }
    context.structs.pop();
    return members;
  };
}

/** Sets an absent required member to its zero value, as in Go. Times stay absent. */
function fillRequired(members: Record<string, unknown>, { member, decode }: Slot, context: DecodeContext): void {
  const zero = member.schema.type === "object" ? decode({}, context) : zeroOf(member.schema);
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

function reportMismatch(value: unknown, expected: string, context: DecodeContext, found = jsonType(value)): undefined {
  if (value === null) return undefined;
  const struct = context.structs.at(-1);
  const path = context.steps
    .filter((step, index) => typeof step === "string" && !context.keys.includes(index))
    .join(".");
  const where = struct === undefined ? "Go value" : `Go struct field ${struct}.${path}`;
  return reportError(context, `json: cannot unmarshal ${found} into ${where} of type ${expected}`);
}

function jsonType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (value instanceof NumberLiteral || typeof value === "bigint") return "number";
  return typeof value === "boolean" ? "bool" : typeof value;
}
