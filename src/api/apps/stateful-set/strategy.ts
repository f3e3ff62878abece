import type { Strategy } from "../../kind.ts";
import { createPrepareForUpdate, prepareForCreate } from "../workload/strategy.ts";
import { dropEmptyContainers, setClaimTypeMeta, setStatefulSetDefaults } from "./defaults.ts";
import { type StatefulSet, statefulSetSpec } from "./schema.ts";
import { validateStatefulSet, validateStatefulSetUpdate } from "./validation.ts";
import { statefulSetWarnings } from "./warnings.ts";

function afterDecode(object: StatefulSet): StatefulSet {
  if (object.spec === undefined) return object;
  const { volumeClaimTemplates: claims, template, ...spec } = object.spec;
  const claimed = claims === undefined ? {} : { volumeClaimTemplates: claims.map(setClaimTypeMeta) };
  return { ...object, spec: { ...spec, ...claimed, template: dropEmptyContainers(template) } };
}

/** Drops `maxUnavailable`, whose feature is off by default, unless the stored set has it. */
function dropDisabledFields(next: StatefulSet, previous: StatefulSet | undefined): StatefulSet {
  const rollingUpdate = next.spec?.updateStrategy?.rollingUpdate;
  if (next.spec === undefined || rollingUpdate?.maxUnavailable === undefined) return next;
  if (previous?.spec?.updateStrategy?.rollingUpdate?.maxUnavailable !== undefined) return next;
  const { maxUnavailable: _, ...rest } = rollingUpdate;
  return { ...next, spec: { ...next.spec, updateStrategy: { ...next.spec.updateStrategy, rollingUpdate: rest } } };
}

const countChanges = createPrepareForUpdate<StatefulSet>(statefulSetSpec);

export const statefulSetStrategy: Strategy<StatefulSet> = {
  setDefaults: setStatefulSetDefaults,
  prepareForCreate: (object) => prepareForCreate(dropDisabledFields(object, undefined)),
  prepareForUpdate: (next, previous) => countChanges(dropDisabledFields(next, previous), previous),
  validate: validateStatefulSet,
  validateUpdate: validateStatefulSetUpdate,
  warnings: statefulSetWarnings,
  afterDecode: afterDecode,
};
