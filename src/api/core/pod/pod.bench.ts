/**
 * Run by `make bench`: prints one JSON line per operation of the schema package, with the microseconds and the bytes of
 * heap for a pod of about 3 KB.
 */
import { readFileSync } from "node:fs";
import { decodeCbor } from "../../../schema/cbor/decode.ts";
import { encodeCbor } from "../../../schema/cbor/encode.ts";
import { decode } from "../../../schema/decode/decode.ts";
import { applyDefaults } from "../../../schema/defaults.ts";
import { encodeJson } from "../../../schema/json/encode.ts";
import { parseJson } from "../../../schema/json/parse.ts";
import { decodeProtobuf } from "../../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../../schema/protobuf/encode.ts";
import { validate } from "../../../schema/validation/validate.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { deepFreeze } from "../../../schema/value/freeze.ts";
import { cpuMicroseconds, heapBytes } from "../../../testing/std/measure.ts";
import { podKind } from "./kind.ts";
import { pod } from "./schema.ts";

const text = readFileSync(new URL("./pod.bench.json", import.meta.url));
const parsed = parseJson(text).value;
const value = applyDefaults(pod, decode(pod, parsed).value);
const full = podKind.strategy.setDefaults?.(value) ?? value;
const json = encodeJson(pod, full);
const protobuf = encodeProtobuf(pod, full);
const cbor = encodeCbor(pod, full);
const structuredCopy = structuredClone(full);

const operations: Readonly<Record<string, () => unknown>> = {
  "JSON.parse": () => JSON.parse(json.toString()),
  "JSON.stringify": () => JSON.stringify(full),
  parseJson: () => parseJson(json),
  decode: () => decode(pod, parsed),
  "decode, default, validate": () => validate(pod, applyDefaults(pod, decode(pod, parsed).value)),
  "the same with the kind's own rules": () => {
    const decoded = applyDefaults(pod, decode(pod, parsed).value);
    const object = podKind.strategy.setDefaults?.(decoded) ?? decoded;
    return [validate(pod, object), podKind.strategy.validate?.(object)];
  },
  applyDefaults: () => applyDefaults(pod, value),
  setDefaults: () => podKind.strategy.setDefaults?.(value),
  validate: () => validate(pod, full),
  "strategy.validate": () => podKind.strategy.validate?.(full),
  encodeJson: () => encodeJson(pod, full, { omitTypeMeta: true }),
  encodeProtobuf: () => encodeProtobuf(pod, full),
  decodeProtobuf: () => decodeProtobuf(pod, protobuf),
  encodeCbor: () => encodeCbor(pod, full),
  decodeCbor: () => decodeCbor(cbor),
  deepEqual: () => deepEqual(full, structuredCopy),
  deepFreeze: () => deepFreeze(decode(pod, parsed).value),
};
console.log(JSON.stringify({ json: json.length, protobuf: protobuf.length, cbor: cbor.length }));
for (const [operation, run] of Object.entries(operations)) {
  console.log(JSON.stringify({ operation, microseconds: cpuMicroseconds(run, 3000), bytes: heapBytes(run) }));
}
