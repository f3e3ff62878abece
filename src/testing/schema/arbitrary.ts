/** For tests: generates values of a schema in their JSON representation. */
import fc, { type Arbitrary } from "fast-check";
import { membersOf } from "../../schema/members.ts";
import type { IntegerSchema, ObjectSchema, Schema, SpecialSchema } from "../../schema/schema.ts";
import { formatDuration, formatInstant } from "../../schema/value/time.ts";

const DEPTH_MAX = 6;

/** The names of members that every object of JavaScript inherits, which tables and maps must not take for theirs. */
const inherited = { weight: 1, arbitrary: fc.constantFrom("constructor", "toString", "__proto__") };

/** Optional members are present at random; the depth of recursive schemas is bounded. */
export function arbitraryOf(schema: Schema, depth = 0): Arbitrary<unknown> {
  switch (schema.type) {
    case "string":
      return schema.values === undefined
        ? fc.oneof({ weight: 15, arbitrary: fc.string({ maxLength: 8, unit: "grapheme" }) }, inherited)
        : fc.constantFrom(...schema.values);
    case "enum":
      return fc.constantFrom(...Object.keys(schema.numbers));
    case "integer":
      return integer(schema);
    case "number":
      return fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (Object.is(value, -0) ? 0 : value));
    case "boolean":
      return fc.boolean();
    case "bytes":
      return fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes).toString("base64"));
    case "special":
      return special(schema);
    case "raw":
      return fc.dictionary(fc.string({ minLength: 1, maxLength: 4 }), fc.jsonValue({ maxDepth: 1 }), {
        maxKeys: 2,
        noNullPrototype: true,
      });
    case "list":
      return fc.array(arbitraryOf(schema.items, depth + 1), { maxLength: depth > DEPTH_MAX ? 0 : 2 });
    case "map":
      return fc.dictionary(
        fc.oneof({ weight: 15, arbitrary: fc.string({ maxLength: 6 }) }, inherited),
        arbitraryOf(schema.values, depth + 1),
        { maxKeys: 2, noNullPrototype: true },
      );
    case "either":
      return arbitraryOf(schema.object.schema(), depth + 1);
    case "object":
      return object(schema, depth);
    default:
      return schema satisfies never;
  }
}

function object(schema: ObjectSchema, depth: number): Arbitrary<unknown> {
  if (depth > DEPTH_MAX) return fc.constant({});
  // Nested objects have no kind in protobuf.
  const members = membersOf(schema).filter(({ field }) => depth === 0 || field.number !== 0);
  const always = members.filter(({ field }) => depth === 0 || field.presence === "required");
  const others = members.filter((member) => !always.includes(member));
  // Creates generators only for the chosen members, since the schema of pods is large.
  return fc.subarray(others, { maxLength: Math.min(others.length, 8) }).chain((drawn) => {
    const arbitraries = [...always, ...drawn].map(({ name, schema: member }) => {
      return [name, arbitraryOf(member, depth + 1)] as const;
    });
    return fc.record(Object.fromEntries(arbitraries), { noNullPrototype: true });
  });
}

function integer({ width }: IntegerSchema): Arbitrary<number> {
  if (width === "int32") return fc.integer();
  return width === "int64" ? fc.maxSafeInteger() : fc.nat();
}

function special({ format }: SpecialSchema): Arbitrary<unknown> {
  const seconds = fc.integer({ min: -62135596800, max: 253402300799 });
  switch (format) {
    case "time":
      return seconds.map((each) => formatInstant({ seconds: each, nanos: 0 }, false));
    case "microTime":
      return fc.tuple(seconds, fc.nat(999_999)).map(([each, micros]) => {
        return formatInstant({ seconds: each, nanos: micros * 1000 }, true);
      });
    case "duration":
      return fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }).map(formatDuration);
    case "quantity":
      return fc
        .tuple(fc.integer(), fc.constantFrom("", "m", "k", "M", "Ki", "Gi", "e3"))
        .map(([number, suffix]) => `${number}${suffix}`);
    case "intOrString":
      return fc.oneof(fc.integer(), fc.string({ maxLength: 4 }));
    default:
      return format satisfies never;
  }
}
