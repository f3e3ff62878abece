/** One JSON line per operation of the schema engine: microseconds for a pod of about 3 KB. */
import { readFileSync } from "node:fs";
import { decode } from "../schema/decode.ts";
import { applyDefaults } from "../schema/default.ts";
import { deepEqual } from "../schema/equal.ts";
import { deepFreeze } from "../schema/freeze.ts";
import { encodeJson, parseJson } from "../schema/json.ts";
import { decodeProtobuf, encodeProtobuf } from "../schema/protobuf.ts";
import { validate } from "../schema/validate.ts";
import { pod } from "./core/pod.ts";
import { podKind } from "./core/pod-kind.ts";

const text = readFileSync(new URL("./pod.bench.json", import.meta.url));
const parsed = parseJson(text).value;
const value = applyDefaults(pod, decode(pod, parsed).value);
const full = podKind.strategy.setDefaults?.(value) ?? value;
const json = encodeJson(pod, full);
const protobuf = encodeProtobuf(pod, full);

const operations: Readonly<Record<string, () => unknown>> = {
  "JSON.parse": () => JSON.parse(json.toString()),
  "JSON.stringify": () => JSON.stringify(full),
  parseJson: () => parseJson(json),
  decode: () => decode(pod, parsed),
  applyDefaults: () => applyDefaults(pod, value),
  setDefaults: () => podKind.strategy.setDefaults?.(value),
  validate: () => validate(pod, full),
  "strategy.validate": () => podKind.strategy.validate?.(full),
  encodeJson: () => encodeJson(pod, full, { omitTypeMeta: true }),
  encodeProtobuf: () => encodeProtobuf(pod, full),
  decodeProtobuf: () => decodeProtobuf(pod, protobuf),
  deepEqual: () => deepEqual(full, structuredCopy),
  deepFreeze: () => deepFreeze(decode(pod, parsed).value),
};
const structuredCopy = structuredClone(full);

console.log(JSON.stringify({ json: json.length, protobuf: protobuf.length }));
for (const [name, run] of Object.entries(operations)) {
  console.log(JSON.stringify({ operation: name, microseconds: Number(microseconds(run).toFixed(2)) }));
}

/** CPU time per call: the best of five rounds, after a warm-up. */
function microseconds(run: () => unknown): number {
  const calls = 3000;
  for (let call = 0; call < calls; call++) run();
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round++) {
    const before = process.cpuUsage();
    for (let call = 0; call < calls; call++) run();
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, (user + system) / calls);
  }
  return best;
}
