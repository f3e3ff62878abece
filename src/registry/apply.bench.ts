/**
 * Run by `make bench`: one JSON line per operation, with the microseconds that server-side apply and its book-keeping
 * take for a pod of about 3 KB.
 */
import { readFileSync } from "node:fs";
import { podKind } from "../api/core/pod/kind.ts";
import { type Pod, pod } from "../api/core/pod/schema.ts";
import { compare } from "../schema/apply/compare.ts";
import { canonicalize, difference, union } from "../schema/apply/field-set.ts";
import { toJsonValue } from "../schema/apply/json-value.ts";
import { merge } from "../schema/apply/merge.ts";
import { parseFields } from "../schema/apply/parse-fields.ts";
import { shapeOf } from "../schema/apply/shape.ts";
import { toFieldSet } from "../schema/apply/to-field-set.ts";
import { validateTyped } from "../schema/apply/typed-validation.ts";
import { decode } from "../schema/decode/decode.ts";
import { applyDefaults } from "../schema/defaults.ts";
import { parseJson } from "../schema/json/parse.ts";
import { deepFreeze } from "../schema/value/freeze.ts";
import { fixture } from "../testing/registry/registry-fixture.ts";
import { cpuMicroseconds } from "../testing/std/measure.ts";
import { mergeConfiguration } from "./apply.ts";
import { updateManagedFields } from "./managed-fields/track-managed-fields.ts";

const text = readFileSync(new URL("../api/core/pod/pod.bench.json", import.meta.url));
const configuration = parseJson(text).value as Readonly<Record<string, unknown>>;
const shape = shapeOf(pod);
await using f = fixture();
const registry = f.registries.of(podKind);
const { name = "", namespace = "default" } = configuration.metadata as Readonly<Record<string, string>>;
const scope = f.scope(namespace);

/** As it comes from the store: nothing shared with what was written. */
function stored(object: Pod): Pod {
  return deepFreeze(decode(pod, structuredClone(object)).value as Pod);
}

const options = { fieldManager: "kubectl", force: false };
const decoded = applyDefaults(pod, decode(pod, configuration).value as Pod);
const full = podKind.strategy.setDefaults?.(decoded) ?? decoded;
const uid = { uid: "00000000-0000-4000-8000-000000000000" };
const created = mergeConfiguration(registry, scope, name, configuration, undefined, options);
const live = stored({ ...created, metadata: { ...created.metadata, ...uid } });
const other = { ...options, fieldManager: "other" };
const shared = stored(mergeConfiguration(registry, scope, name, configuration, live, other));
const spec = configuration.spec as Readonly<Record<string, unknown>>;
const changed = { ...configuration, spec: { ...spec, terminationGracePeriodSeconds: 7 } };
const fields = toFieldSet(shape, configuration);
const update = structuredClone(live) as Pod;
const touched = { ...update, metadata: { ...update.metadata, labels: { ...update.metadata?.labels, touched: "yes" } } };
const writer = { fieldManager: "controller" };

const operations: Readonly<Record<string, () => unknown>> = {
  jsonForm: () => toJsonValue(pod, live),
  checkShape: () => validateTyped(shape, configuration),
  toFieldSet: () => toFieldSet(shape, configuration),
  canonical: () => canonicalize({ ...fields }),
  parseFields: () => parseFields(structuredClone(fields)),
  "structuredClone of the set": () => structuredClone(fields),
  "compare, nothing shared": () => compare(shape, live, update),
  "compare with nothing": () => compare(shape, {}, live),
  merge: () => merge(shape, live, configuration),
  union: () => union(fields, canonicalize(fields)),
  difference: () => difference(fields, canonicalize(fields)),
  "apply that creates": () => mergeConfiguration(registry, scope, name, configuration, undefined, options),
  "apply again, nothing changes": () => mergeConfiguration(registry, scope, name, configuration, live, options),
  "apply of a changed member": () => mergeConfiguration(registry, scope, name, changed, live, options),
  "apply of a changed member, two appliers": () =>
    mergeConfiguration(registry, scope, name, changed, shared, { ...other, force: true }),
  "apply, book fresh from the store": () => mergeConfiguration(registry, scope, name, changed, fresh(), options),
  "update tracked": () => updateManagedFields(registry, scope, touched, live, writer),
  "create tracked": () => updateManagedFields(registry, scope, full, undefined, writer),
};

/** The live object with a book that nobody has read yet. */
function fresh(): Pod {
  const managedFields = live.metadata?.managedFields?.map((entry) => ({ ...entry, fieldsV1: { ...entry.fieldsV1 } }));
  return { ...live, metadata: { ...live.metadata, managedFields } };
}

console.log(JSON.stringify({ configuration: text.length, book: JSON.stringify(live.metadata?.managedFields).length }));
for (const [operation, run] of Object.entries(operations)) {
  console.log(JSON.stringify({ operation, microseconds: cpuMicroseconds(run) }));
}
