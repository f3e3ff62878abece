/**
 * Decodes any JSON value into a value of a schema: checks types, drops and reports unknown members, omits nulls and
 * empty optional members, sets absent required members to zero, converts times and quantities to canonical text. Parts
 * of custom resources are only pruned (`unstructured.ts`). The result shares raw and preserved members and maps of
 * strings with the input.
 */

import { numberOf, withoutLiterals } from "../json/exact-numbers.ts";
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
import { joinPath } from "../value/field-path.ts";
import { INEXACT_INTEGER, int64ToNumber } from "../value/int64.ts";
import { depthMax } from "../value/limits.ts";
import { NumberLiteral } from "../value/number-literal.ts";
import { isPlainObject, setMember } from "../value/plain-object.ts";
import { canonicalizeQuantity, explainQuantityError } from "../value/quantity.ts";
import { canonicalizeTime, formatDuration, parseDuration } from "../value/time.ts";
import { explainTimeError } from "../value/time-error.ts";
import { isEmpty, NIL_LIST, zeroOf } from "../zero-value.ts";
import {
  type DecodeContext,
  type DecodeError,
  type Decoder,
  reportError,
  reportedErrorsMax,
  reportUnknown,
} from "./context.ts";
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
  /** Errors have the texts of Go's converter of patched objects, instead of those of its JSON decoder. */
  readonly converter?: boolean | undefined;
  /** Of custom resources, nulls of fields that are not nullable and have no default stay for validation to reject. */
  readonly keepNulls?: boolean | undefined;
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
    converter: options?.converter === true,
    keepNulls: options?.keepNulls === true,
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
      return (value, context) => (typeof value === "string" ? value : reportMismatch(value, schema, context));
    case "boolean":
      return (value, context) => (typeof value === "boolean" ? value : reportMismatch(value, schema, context));
    case "integer":
      return integerDecoder(schema);
    case "number":
      return (value, context) => {
        if (value instanceof NumberLiteral) return numberOf(value.source);
        return typeof value === "number" || typeof value === "bigint"
          ? Number(value)
          : reportMismatch(value, schema, context);
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

const ranges = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
} as const;

/**
 * Integers of Kubernetes' kinds are numbers in memory: those that would lose digits are refused. Fractions and
 * exponents are refused where the text of the number is known.
 */
function integerDecoder(schema: IntegerSchema): Decoder {
  const [least, most] = ranges[schema.width];
  return (value, context) => {
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most) {
      return schema.as === "bigint" ? BigInt(value) : value;
    }
    if (typeof value === "bigint" && value >= least && value <= most) {
      const exact = schema.as === "bigint" ? value : int64ToNumber(value);
      if (exact !== undefined) return exact;
    }
    return reportMismatch(value, schema, context, jsonNumber(value));
  };
}

/** Names a number with its text, another value by its type. */
function jsonNumber(value: unknown): string {
  if (value instanceof NumberLiteral) return `number ${value.source}`;
  return typeof value === "number" || typeof value === "bigint" ? `number ${value}` : jsonType(value);
}

const bytesSchema: Schema = { type: "bytes", as: "base64" };
const base64Text = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function decodeBase64(value: unknown, context: DecodeContext): unknown {
  if (value === null) return undefined;
  if (typeof value !== "string") return reportMismatch(value, bytesSchema, context);
  if (base64Text.test(value)) return value;
  const dense = value.replace(/[\r\n]/g, "");
  if (base64Text.test(dense)) return dense;
  const stop = dense.search(/[^A-Za-z0-9+/]/);
  const problem = `illegal base64 data at input byte ${stop === -1 ? dense.length - (dense.length % 4) : stop}`;
  return reportError(context, context.converter ? `error decoding from json: ${problem}` : problem);
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
        if (typeof value !== "string") return reportMismatch(value, schema, context);
        // Go's layout requires all six decimals.
        const canonical = micro && !sixDecimals.test(value) ? undefined : canonicalizeTime(value, micro);
        return canonical ?? reportError(context, explainTimeError(value, micro));
      };
    }
    case "duration":
      return (value, context) => {
        if (value === null) return undefined;
        if (typeof value !== "string") return reportMismatch(value, schema, context);
        const nanos = parseDuration(value);
        return nanos === undefined
          ? reportError(context, `time: invalid duration ${JSON.stringify(value)}`)
          : formatDuration(nanos);
      };
    case "quantity":
      return (value, context) => {
        if (value === null) return undefined;
        const text = value instanceof NumberLiteral ? value.source : isNumber(value) ? String(value) : value;
        const canonical = typeof text === "string" ? canonicalizeQuantity(text, schema.milli) : undefined;
        return canonical ?? reportError(context, explainQuantityError(text));
      };
    case "intOrString":
      return (value, context) => {
        if (typeof value === "string") return value;
        return typeof value === "number" && Number.isInteger(value) && value >= -2147483648 && value <= 2147483647
          ? value
          : reportMismatch(value, schema, context, jsonNumber(value));
      };
    default:
      return schema.format satisfies never;
  }
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

function listDecoder(schema: ListSchema): Decoder {
  let item: Decoder | undefined;
  return (value, context) => {
    if (value === null) return undefined;
    if (!Array.isArray(value)) return reportMismatch(value, schema, context);
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
    if (!isPlainObject(value)) return reportMismatch(value, schema, context);
    // Copying takes longer than this check, above all for maps of thousands.
    if (schema.values.type === "string" && containsOnlyStrings(value)) return value;
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

function containsOnlyStrings(members: Readonly<Record<string, unknown>>): boolean {
  for (const name in members) if (typeof members[name] !== "string") return false;
  return true;
}

/**
 * An item that is null or invalid becomes zero, so that a list keeps its length. A list that is null stays null, as a
 * nil slice in Go does until the object is stored in protobuf.
 */
function decodeItem(schema: Schema, decode: Decoder, value: unknown, context: DecodeContext): unknown {
  if (value === null && schema.type === "list") return null;
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
    if (isPlainObject(value)) return decoderOf(schema.object.schema())(value, quiet);
    return schema.list === undefined ? reportError(context, schema.expected) : [];
  };
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
    if (!isPlainObject(value)) return reportMismatch(value, schema, context);
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

/** Sets an absent required member to its zero value, as in Go. Times stay absent, and bytes, whose zero is nil. */
function fillRequired(members: Record<string, unknown>, { member, decode }: Slot, context: DecodeContext): void {
  if (member.schema.type === "bytes") return;
  const { type } = member.schema;
  const zero = type === "object" ? decode({}, context) : type === "list" ? NIL_LIST : zeroOf(member.schema);
  if (zero !== null) members[member.name] = zero;
}

function goType(schema: Schema): string {
  if (schema.goType !== undefined) return schema.goType;
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
    case "number":
      return "float64";
    case "special":
      return schema.format === "intOrString" ? "int32" : "string";
    default:
      return "string";
  }
}

function reportMismatch(value: unknown, schema: Schema, context: DecodeContext, found = jsonType(value)): undefined {
  if (value === null) return undefined;
  if (context.converter) {
    if (schema.type === "integer" && converterKind(value) === "int64") {
      return reportInteger(context, `${found} for ${schema.width}${bound(value, schema) || ": out of range"}`);
    }
    return reportError(context, converterMessage(value, schema, found));
  }
  const struct = context.structs.at(-1);
  const path = context.steps
    .filter((step, index) => typeof step === "string" && !context.keys.includes(index))
    .join(".");
  const where = struct === undefined ? "Go value" : `Go struct field ${struct}.${path}`;
  return reportError(
    context,
    `json: cannot unmarshal ${found} into ${where} of type ${goType(schema)}${bound(value, schema)}`,
  );
}

function reportInteger(context: DecodeContext, problem: string): undefined {
  if (context.errors.length < reportedErrorsMax) {
    context.errors.push({ path: joinPath(context.steps), message: `cannot convert ${problem}`, isInteger: true });
  }
}

/** Why an integer that Go accepts is refused. */
function bound(value: unknown, schema: Schema): string {
  if (typeof value !== "bigint" || schema.type !== "integer" || schema.as === "bigint") return "";
  const [least, most] = ranges[schema.width];
  return value < least || value > most ? "" : `: ${INEXACT_INTEGER}`;
}

/** The message of Go's unstructured converter, which decodes applied objects and those that strategic patches give. */
function converterMessage(value: unknown, schema: Schema, found: string): string {
  const kind = converterKind(value);
  switch (schema.type) {
    case "object":
      return `cannot restore struct from: ${kind}`;
    case "list":
    case "bytes":
      return `cannot restore slice from ${kind}`;
    case "map":
      return `cannot restore map from ${kind}`;
    case "integer":
      return kind === "float64" ? `cannot convert float64 to ${schema.width}` : `unrecognized type: ${schema.width}`;
    case "special":
      return `json: cannot unmarshal ${found} into Go value of type ${goType(schema)}`;
    default:
      // Go converts whole numbers to text, which the converter then refuses.
      if (goKind(schema) === "string" && kind === "int64") return `cannot convert int64 to ${goType(schema)}`;
      return `unrecognized type: ${goKind(schema)}`;
  }
}

function converterKind(value: unknown): string {
  if (typeof value === "number") return Number.isInteger(value) ? "int64" : "float64";
  const type = jsonType(value);
  return { object: "map", array: "slice", number: "int64" }[type] ?? type;
}

/** The kind of the Go type of a scalar. */
function goKind(schema: Schema): string {
  return schema.type === "boolean" ? "bool" : schema.type === "number" ? "float64" : "string";
}

function jsonType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (value instanceof NumberLiteral || typeof value === "bigint") return "number";
  return typeof value === "boolean" ? "bool" : typeof value;
}
