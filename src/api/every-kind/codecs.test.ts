/** Round trips of every kind through JSON, protobuf and CBOR, with arbitrary values. */
import fc from "fast-check";
import t from "tap";
import { decodeCbor } from "../../schema/cbor/decode.ts";
import { encodeCbor } from "../../schema/cbor/encode.ts";
import { decode } from "../../schema/decode/decode.ts";
import { applyDefaults } from "../../schema/defaults.ts";
import { encodeJson, stringify } from "../../schema/json/encode.ts";
import { parseJson } from "../../schema/json/parse.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { encodeYaml } from "../../schema/yaml/write-yaml.ts";
import { parseYaml } from "../../schema/yaml/yaml.ts";
import { topLevelSchemas } from "../../testing/api/every-schema.ts";
import { arbitraryOf } from "../../testing/schema/arbitrary.ts";

const RUNS = 25;

const laws: Readonly<Record<string, (schema: ObjectSchema, value: object, text: string) => boolean>> = {
  "decoding JSON reverses encoding": (schema, value, text) => {
    const { value: back, unknown, errors } = decode(schema, parseJson(encodeJson(schema, value)).value);
    return unknown.length + errors.length === 0 && stringify(schema, back) === text;
  },
  "decoding YAML reverses encoding": (schema, _, text) => {
    const [document] = parseYaml(encodeYaml(JSON.parse(text)));
    return sorted(stringify(schema, decode(schema, document?.value).value)) === sorted(text);
  },
  "decoding protobuf reverses encoding": (schema, value, text) => {
    const back = decodeProtobuf(schema, encodeProtobuf(schema, value)) as object;
    const { kind, apiVersion } = value as { readonly kind?: string; readonly apiVersion?: string };
    return sorted(stringify(schema, { ...back, kind, apiVersion })) === sorted(text);
  },
  "decoding CBOR reverses encoding": (schema, value, text) => {
    const back = decode(schema, decodeCbor(encodeCbor(schema, value))).value;
    return sorted(stringify(schema, back)) === sorted(text);
  },
  "what has its defaults needs no more": (schema, value) => {
    const once = applyDefaults(schema, value);
    return applyDefaults(schema, once) === once;
  },
};

/** The order of keys in raw values depends on the encoding. */
function sorted(text: string): string {
  return encodeYaml(JSON.parse(text));
}

const schemas = await topLevelSchemas();
for (const [law, holds] of Object.entries(laws)) {
  t.test(`${law}, for every kind`, async (t) => {
    for (const [name, schema] of schemas) {
      const values = arbitraryOf(schema).map((drawn) => decode(schema, drawn).value as object);
      const property = fc.property(values, (value) => holds(schema, value, stringify(schema, value)));
      const { failed, counterexample, seed } = fc.check(property, { numRuns: RUNS });
      if (failed) t.fail(`${name} (seed ${seed}): ${JSON.stringify(counterexample)}`);
    }
    t.ok(schemas.size > 70, `${schemas.size} kinds`);
  });
}
