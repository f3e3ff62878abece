import type { FieldError } from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { ageColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { validateList } from "../common-validation.ts";
import { validateSelectors } from "../device-selector.ts";
import { validateDeviceConfiguration } from "../resource-claim/validation.ts";
import { type DeviceClass, deviceClass } from "../schemas.ts";

const CONFIGURATIONS_MAX = 32;

export const deviceClassKind: Kind<DeviceClass> = {
  group: "resource.svc.io",
  version: "v1beta2",
  since: "1.33",
  storageVersion: "v1beta1",
  kind: "DeviceClass",
  listKind: "DeviceClassList",
  plural: "deviceclasses",
  singular: "deviceclass",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "deviceclasses",
  schema: deviceClass,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "spec"],
  strategy: {
    prepareForCreate: setFirstGeneration,
    prepareForUpdate: (next, previous) => updateGeneration(next, previous, !deepEqual(next.spec, previous.spec)),
    validate: validateClass,
  },
};

/** Selectors and configuration that do not change are not checked again. */
function validateClass({ spec }: DeviceClass, previous?: DeviceClass): readonly FieldError[] {
  const before = previous?.spec;
  const hasSelectors = before !== undefined && deepEqual(spec.selectors, before.selectors);
  const hasConfig = before !== undefined && deepEqual(spec.config, before.config);
  return [
    ...validateSelectors(spec.selectors, "spec.selectors", hasSelectors),
    ...validateList(spec.config, CONFIGURATIONS_MAX, "spec.config", (config, at) =>
      validateDeviceConfiguration(config, at, hasConfig),
    ),
  ];
}
