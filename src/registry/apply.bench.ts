/**
 * Run by `make bench`: one JSON line per operation, with the microseconds that server-side apply and field management
 * take for a pod of about 3 KB.
 */

import { readFileSync } from "node:fs";
import { podKind } from "../api/core/pod/kind.ts";
import { type Pod, pod } from "../api/core/pod/schema.ts";
import { compare } from "../schema/apply/compare.ts";
import { canonicalize, difference, union } from "../schema/apply/fieldpath/field-set.ts";
import { parseFields } from "../schema/apply/fieldpath/parse-fields.ts";
import { toJsonValue } from "../schema/apply/json-value.ts";
import { merge } from "../schema/apply/merge.ts";
import { shapeOf } from "../schema/apply/shape.ts";
import { toFieldSet } from "../schema/apply/to-field-set.ts";
import { validateTyped } from "../schema/apply/typed-validation.ts";
import { decode } from "../schema/decode/decode.ts";
import { applyDefaults as applySchemaDefaults } from "../schema/defaults.ts";
import { parseJson } from "../schema/json/parse.ts";
import { deepFreeze } from "../schema/value/freeze.ts";
import { runSteps } from "../std/async/steps.ts";
import { fixture } from "../testing/registry/registry-fixture.ts";
import { cpuMicroseconds } from "../testing/std/measure.ts";
import { type ApplyOptions, type Configuration, mergeConfiguration } from "./managed-fields/apply-configuration.ts";
import { updateManagedFields } from "./managed-fields/track-managed-fields.ts";
import { applyDefaults } from "./write/apply-defaults.ts";

const text = readFileSync(new URL("../api/core/pod/pod.bench.json", import.meta.url));
const configuration = parseJson(text).value as Readonly<Record<string, unknown>>;
const shape = shapeOf(pod);
await using f = fixture();
const registry = f.registries.of(podKind);
const { name = "", namespace = "default" } = configuration.metadata as Readonly<Record<string, string>>;
const scope = f.scope(namespace);

/** As read from the store: shares no memory with the written object. */
function stored(object: Pod): Pod {
  return deepFreeze(decode(pod, structuredClone(object)).value as Pod);
}

/** The part of an apply before admission. */
function apply(applied: Configuration, previous: Pod | undefined, options: ApplyOptions<Pod>): Pod {
  const request = { registry, scope, name, options };
  return applyDefaults(request, runSteps(mergeConfiguration(request, applied, previous)));
}

const options = { fieldManager: "kubectl", force: false };
const decoded = applySchemaDefaults(pod, decode(pod, configuration).value as Pod);
const full = podKind.strategy.setDefaults?.(decoded) ?? decoded;
const uid = { uid: "00000000-0000-4000-8000-000000000000" };
const created = apply(configuration, undefined, options);
const live = stored({ ...created, metadata: { ...created.metadata, ...uid } });
const other = { ...options, fieldManager: "other" };
const shared = stored(apply(configuration, live, other));
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
  "apply that creates": () => apply(configuration, undefined, options),
  "apply again, nothing changes": () => apply(configuration, live, options),
  "apply of a changed member": () => apply(changed, live, options),
  "apply of a changed member, two appliers": () => apply(changed, shared, { ...other, force: true }),
  "apply, managedFields not parsed yet": () => apply(changed, fresh(), options),
  "update tracked": () => updateManagedFields({ registry, scope, name, options: writer }, touched, live),
  "create tracked": () => updateManagedFields({ registry, scope, name, options: writer }, full, undefined),
};

/** The live object with managedFields that are not in the cache of parsed fields. */
function fresh(): Pod {
  const managedFields = live.metadata?.managedFields?.map((entry) => ({ ...entry, fieldsV1: { ...entry.fieldsV1 } }));
  return { ...live, metadata: { ...live.metadata, managedFields } };
}

console.log(
  JSON.stringify({ configuration: text.length, managedFields: JSON.stringify(live.metadata?.managedFields).length }),
);
for (const [operation, run] of Object.entries(operations)) {
  console.log(JSON.stringify({ operation, microseconds: cpuMicroseconds(run) }));
}
