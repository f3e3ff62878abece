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

export const statefulSetStrategy: Strategy<StatefulSet> = {
  setDefaults: setStatefulSetDefaults,
  prepareForCreate,
  prepareForUpdate: createPrepareForUpdate<StatefulSet>(statefulSetSpec),
  validate: validateStatefulSet,
  validateUpdate: validateStatefulSetUpdate,
  warnings: statefulSetWarnings,
  afterDecode: afterDecode,
};
