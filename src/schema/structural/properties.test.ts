import fc from "fast-check";
import t from "tap";
import { decode } from "../decode/decode.ts";
import { applyDefaults } from "../defaults.ts";
import { object, optional, string } from "../define.ts";
import type { Schema } from "../schema.ts";
import { validateWithRatcheting } from "../validation/ratcheting.ts";
import { validate } from "../validation/validate.ts";
import { deepEqual } from "../value/equal.ts";
import { convertPart } from "./convert.ts";
import type { JsonSchemaProps } from "./json-schema-props.ts";

const metadata = object("meta/v1.ObjectMeta", { name: optional(1, string) });

const names = fc.constantFrom("a", "b", "c", "__proto__", "constructor");
const flag = (name: keyof JsonSchemaProps) => fc.option(fc.constant({ [name]: true }), { nil: {} });

/** Any schema with any keywords. Values use the same few names. */
const { schemas } = fc.letrec<{ schemas: JsonSchemaProps }>((tie) => ({
  schemas: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    fc.record({ type: fc.constantFrom("string", "integer", "number", "boolean"), nullable: fc.boolean() }),
    fc.record({ type: fc.constant("integer"), default: fc.integer(), minimum: fc.integer({ min: -5, max: 5 }) }),
    fc.constant({ "x-kubernetes-preserve-unknown-fields": true }),
    fc
      .tuple(fc.dictionary(names, tie("schemas"), { maxKeys: 4 }), flag("x-kubernetes-preserve-unknown-fields"))
      .map(([properties, more]) => ({ type: "object", properties, ...more })),
    fc.tuple(tie("schemas"), fc.boolean()).map(([values, nullable]) => ({
      type: "object",
      nullable,
      additionalProperties: values,
    })),
    fc.tuple(tie("schemas"), fc.constantFrom("atomic", "set")).map(([items, listType]) => ({
      type: "array",
      items,
      "x-kubernetes-list-type": listType,
    })),
  ),
}));

const { values } = fc.letrec((tie) => ({
  values: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(null, true, "x", 1, 1.5),
    fc.array(tie("values"), { maxLength: 3 }),
    fc.dictionary(names, tie("values"), { maxKeys: 4 }),
  ),
}));

const parts = schemas.map((props): Schema => convertPart(props, { name: "example.com/v1.Any", metadata }));

/** Undefined for a value that cannot be decoded. */
function pruned(schema: Schema, value: unknown): unknown {
  return decode(schema, value).value;
}

t.test("decode() is idempotent: a pruned value has no unknown member", async () => {
  fc.assert(
    fc.property(parts, values, (schema, value) => {
      const once = pruned(schema, value);
      if (once === undefined || once === null) return true;
      const again = decode(schema, once);
      return again.unknown.length === 0 && deepEqual(again.value, once);
    }),
    { numRuns: 2000 },
  );
});

t.test("applyDefaults() is idempotent and does not change its input", async () => {
  fc.assert(
    fc.property(parts, values, (schema, value) => {
      const read = pruned(schema, value);
      const before = JSON.stringify(read);
      const once = applyDefaults(schema, read);
      return JSON.stringify(read) === before && deepEqual(applyDefaults(schema, once), once);
    }),
    { numRuns: 2000 },
  );
});

t.test(
  "validate() handles any value of any schema, and ratcheting reports no errors of an unchanged value",
  async () => {
    fc.assert(
      fc.property(parts, values, (schema, value) => {
        const read = pruned(schema, value) ?? null;
        const errors = validate(schema, read);
        return validateWithRatcheting(schema, read, read).length === 0 && errors.every(({ field }) => field !== "");
      }),
      { numRuns: 2000 },
    );
  },
);
