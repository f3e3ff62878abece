/**
 * Kubernetes' hash of a pod template: FNV-1a, 32 bits, of the template as github.com/davecgh/go-spew prints it with
 * `%#v` and sorted keys. Names of replica sets end in it, so another hash would start a rollout on an upgrade.
 */
import { type PodTemplateSpec, podTemplateSpec } from "../../api/core/pod-template/schema.ts";
import { type Field, type ObjectSchema, type Schema, type SpecialSchema, schemaOf } from "../../schema/schema.ts";
import { getMember } from "../../schema/value/plain-object.ts";
import { canonicalizeQuantity, decimalPowers, parseQuantity } from "../../schema/value/quantity.ts";
import { goFieldName, namedTypes } from "./go-names.ts";

const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

/** The text of label `pod-template-hash`. After a collision of names the count changes the hash. */
export function computeHash(template: PodTemplateSpec, collisionCount: number | undefined): string {
  const printed = Buffer.from(printPodTemplate(template));
  if (collisionCount === undefined) return safeEncode(fnv1a(printed));
  // Kubernetes writes the count into a buffer of eight bytes.
  const count = Buffer.alloc(8);
  count.writeUInt32LE(collisionCount >>> 0);
  return safeEncode(fnv1a(Buffer.concat([printed, count])));
}

function fnv1a(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  // Not `for … of`, which takes five times as long for the megabytes of a large template.
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
  return hash >>> 0;
}

/** Digits as characters of generated names, without vowels. */
export function safeEncode(hash: number): string {
  return [...String(hash)].map((digit) => ALPHABET.charAt(digit.charCodeAt(0) % ALPHABET.length)).join("");
}

export function printPodTemplate(template: PodTemplateSpec): string {
  return `(v1.PodTemplateSpec)${printStruct(podTemplateSpec, template)}`;
}

function printStruct(schema: ObjectSchema, value: unknown): string {
  const members = (value ?? {}) as Readonly<Record<string, unknown>>;
  let text = "{";
  for (const { name, head, schema: member, isInline, isPointer } of printedFields(schema)) {
    text += head;
    if (isInline) text += printStruct(member as ObjectSchema, members);
    else if (isPointer && (members[name] ?? undefined) === undefined) text += "<nil>";
    else text += printValue(member, members[name]);
  }
  return `${text}}`;
}

/** A field as it is printed in every struct. */
interface PrintedField {
  readonly name: string;
  /** What stands before the value: ` Image:(string)`. */
  readonly head: string;
  readonly schema: Schema;
  readonly isInline: boolean;
  readonly isPointer: boolean;
}

/** By struct, since a template may have thousands of the same. */
const printed = new WeakMap<ObjectSchema, readonly PrintedField[]>();

function printedFields(schema: ObjectSchema): readonly PrintedField[] {
  let fields = printed.get(schema);
  if (fields === undefined) {
    const struct = typeName(schema);
    fields = Object.entries(schema.fields).map(([name, field], i) => {
      const part = toPrintedField(struct, name, field);
      return i === 0 ? part : { ...part, head: ` ${part.head}` };
    });
    printed.set(schema, fields);
  }
  return fields;
}

function toPrintedField(struct: string, name: string, field: Field): PrintedField {
  const schema = schemaOf(field);
  if (field.inline === true) {
    const embedded = typeName(schema as ObjectSchema);
    return { name, head: `${embedded}:(v1.${embedded})`, schema, isInline: true, isPointer: false };
  }
  const isPointer = (field.presence === "pointer" || field.nilable === true) && !isReference(schema);
  const type = goType(schema, name === "uid" ? "types.UID" : namedType(struct, name));
  const head = `${goFieldName(struct, name)}:(${isPointer ? "*" : ""}${type})`;
  return { name, head, schema, isInline: false, isPointer };
}

function typeName({ name }: ObjectSchema): string {
  return name.slice(name.indexOf(".") + 1);
}

/** Slices and maps are nil without a pointer. */
function isReference({ type }: Schema): boolean {
  return type === "list" || type === "map" || type === "bytes";
}

function namedType(struct: string, field: string): string | undefined {
  const name = getMember(namedTypes, struct)?.[field];
  return name === undefined ? undefined : `v1.${name}`;
}

function goType(schema: Schema, named: string | undefined): string {
  switch (schema.type) {
    case "list":
      return `[]${goType(schema.items, named)}`;
    case "map":
      return named ?? `map[string]${goType(schema.values, undefined)}`;
    case "object":
      return `v1.${typeName(schema)}`;
    case "integer":
      return schema.width;
    case "boolean":
      return "bool";
    case "bytes":
      return "[]uint8";
    case "raw":
      return "v1.FieldsV1";
    case "special":
      return specialTypes[schema.format];
    default:
      return named ?? "string";
  }
}

const specialTypes: Readonly<Record<SpecialSchema["format"], string>> = {
  time: "v1.Time",
  microTime: "v1.MicroTime",
  duration: "v1.Duration",
  quantity: "resource.Quantity",
  intOrString: "intstr.IntOrString",
};

/** Prints without the type: it stands before fields, and not before items. */
function printValue(schema: Schema, value: unknown): string {
  switch (schema.type) {
    case "list": {
      const items = (value ?? []) as readonly unknown[];
      return items.length === 0 ? "<nil>" : `[${items.map((item) => printValue(schema.items, item)).join(" ")}]`;
    }
    case "map": {
      const entries = Object.entries((value ?? {}) as Readonly<Record<string, unknown>>);
      if (entries.length === 0) return "<nil>";
      const sorted = entries.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      return `map[${sorted.map(([key, item]) => `${key}:${printValue(schema.values, item)}`).join(" ")}]`;
    }
    case "object":
      return printStruct(schema, value);
    case "integer":
      return String(value ?? 0);
    case "boolean":
      return String(value ?? false);
    case "special":
      return printSpecial(schema.format, value);
    default:
      return String(value ?? "");
  }
}

function printSpecial(format: SpecialSchema["format"], value: unknown): string {
  if (format === "quantity") return printQuantity(String(value ?? ""));
  if (format === "intOrString") {
    const isText = typeof value === "string";
    return `{Type:(intstr.Type)${isText ? 1 : 0} IntVal:(int32)${isText ? 0 : (value ?? 0)} StrVal:(string)${isText ? value : ""}}`;
  }
  // Templates have no times: the server drops them.
  return "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}";
}

/** As the parser leaves a quantity: the digits and the power of ten of its text. */
function printQuantity(text: string): string {
  const canonical = canonicalizeQuantity(text) ?? "";
  const format = canonical === "0" || canonical === "" ? "" : (parseQuantity(canonical)?.format ?? "DecimalSI");
  const [amount, scale] = readAmount(canonical, format);
  const amountText = `{value:(int64)${amount} scale:(resource.Scale)${scale}}`;
  return (
    `{i:(resource.int64Amount)${amountText} d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>} ` +
    `s:(string)${canonical} Format:(resource.Format)${format}}`
  );
}

function readAmount(text: string, format: string): readonly [string, number] {
  const match = /^([+-]?\d+)(?:e(-?\d+)|([a-zA-Z]*))$/.exec(text);
  if (match === null) return ["0", 0];
  const [, digits = "0", exponent, suffix = ""] = match;
  if (exponent !== undefined) return [digits, Number(exponent)];
  if (format === "BinarySI") return [String((parseQuantity(text)?.nanos ?? 0n) / 1_000_000_000n), 0];
  return [digits, decimalPowers[suffix] ?? 0];
}
