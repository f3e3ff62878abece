/** The strategies of all kinds return errors and do not throw for arbitrary objects of the right types. */
import fc from "fast-check";
import t from "tap";
import { decode } from "../../schema/decode/decode.ts";
import { applyDefaults } from "../../schema/defaults.ts";
import { validate } from "../../schema/validation/validate.ts";
import { deepFreeze } from "../../schema/value/freeze.ts";
import { everyKind } from "../../testing/api/every-kind.ts";
import { arbitraryOf } from "../../testing/schema/arbitrary.ts";
import type { ApiObject, Kind } from "../kind.ts";

const RUNS = 40;
const NOW = "2026-01-02T03:04:05Z";

/** The steps of a create. */
function create(kind: Kind, body: unknown): ApiObject {
  const { strategy } = kind;
  const decoded = applyDefaults(kind.schema, decode(kind.schema, body).value) as ApiObject;
  const defaulted = strategy.setDefaults?.(decoded) ?? decoded;
  const object = deepFreeze(strategy.prepareForCreate?.(defaulted, NOW) ?? defaulted);
  validate(kind.schema, object);
  strategy.validate?.(object);
  strategy.warnings?.(object, undefined);
  return object;
}

function update(kind: Kind, body: unknown, previous: ApiObject): void {
  const { strategy } = kind;
  const decoded = applyDefaults(kind.schema, decode(kind.schema, body).value) as ApiObject;
  const defaulted = strategy.setDefaults?.(decoded) ?? decoded;
  const next = deepFreeze(strategy.prepareForUpdate?.(defaulted, previous, NOW) ?? defaulted);
  strategy.validate?.(next, previous);
  strategy.validateUpdate?.(next, previous);
  strategy.warnings?.(next, previous);
  for (const { strategy: subresource, view } of kind.subresources) {
    if (view !== undefined) view.fromView(previous, view.toView(previous));
    if (subresource === undefined) continue;
    const updated = subresource.prepareForUpdate(defaulted, previous, NOW);
    subresource.validateUpdate?.(updated, previous);
    subresource.warnings?.(updated, previous);
  }
}

/** The columns, selectable fields and conversions of the object. */
function show(kind: Kind, object: ApiObject): void {
  for (const column of kind.columns) column.cell(object, Date.parse(NOW));
  for (const field of Object.values(kind.selectableFields)) field(object);
  kind.rowConditions?.(object);
  if (kind.conversion !== undefined) kind.conversion.fromStorage(kind.conversion.toStorage(object));
}

for (const kind of everyKind().kinds()) {
  t.test(`${kind.group}/${kind.version} ${kind.kind} accepts any object`, async (t) => {
    const objects = arbitraryOf(kind.schema);
    const property = fc.property(objects, objects, (one, other) => {
      const previous = create(kind, one);
      show(kind, previous);
      update(kind, other, previous);
    });
    const { failed, errorInstance, counterexample, seed } = fc.check(property, { numRuns: RUNS });
    const where = errorInstance instanceof Error ? errorInstance.stack : String(errorInstance);
    t.notOk(failed, failed ? `seed ${seed}: ${JSON.stringify(counterexample)}\n${where}` : "no step throws");
  });
}
