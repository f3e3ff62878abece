import { type FieldError, validateEach } from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { formatAge } from "../../columns/human-duration.ts";
import { validateDriverName } from "../../core/volume/source-validation.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { dns1123Subdomain, validateName } from "../../meta/validation/names.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { validateLabelName, validatePoolName } from "../common-validation.ts";
import { validateSelectors } from "../device-selector.ts";
import { setTaintTime, validateTaint } from "../device-taints.ts";
import { type DeviceTaintRule, deviceTaintRule } from "./schema.ts";

export const deviceTaintRuleKind: Kind<DeviceTaintRule> = {
  group: "resource.svc.io",
  version: "v1alpha3",
  since: "1.33",
  kind: "DeviceTaintRule",
  listKind: "DeviceTaintRuleList",
  plural: "devicetaintrules",
  singular: "devicetaintrule",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "devicetaintrules",
  schema: deviceTaintRule,
  columns: [
    nameColumn,
    column("Key", ({ spec }) => spec.taint?.key ?? ""),
    column("Value", ({ spec }) => spec.taint?.value ?? ""),
    column("Effect", ({ spec }) => spec.taint?.effect ?? ""),
    column("TimeAdded", ({ spec }, now) => formatAge(spec.taint?.timeAdded, now)),
    ageColumn,
  ],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "spec"],
  strategy: {
    prepareForCreate: (rule, now) => setFirstGeneration(setTime(rule, now)),
    prepareForUpdate: (next, previous, now) => {
      const timed = setTime(next, now);
      return updateGeneration(timed, previous, !deepEqual(timed.spec, previous.spec));
    },
    validate: validateRule,
  },
};

function setTime(rule: DeviceTaintRule, now: string): DeviceTaintRule {
  const { taint } = rule.spec;
  return taint === undefined ? rule : { ...rule, spec: { ...rule.spec, taint: setTaintTime(taint, now) } };
}

/** Selectors that do not change are not checked again. */
function validateRule({ spec }: DeviceTaintRule, previous?: DeviceTaintRule): readonly FieldError[] {
  const before = previous?.spec.deviceSelector;
  return [
    ...validateEach(spec.deviceSelector === undefined ? [] : [spec.deviceSelector], (selector) =>
      validateSelector(selector, before !== undefined && deepEqual(selector.selectors, before.selectors)),
    ),
    ...validateTaint(spec.taint ?? {}, "spec.taint"),
  ];
}

type Selector = NonNullable<DeviceTaintRule["spec"]["deviceSelector"]>;

function validateSelector(selector: Selector, isStored: boolean): readonly FieldError[] {
  const at = "spec.deviceSelector";
  const { deviceClassName, driver, pool, device } = selector;
  return [
    ...(deviceClassName === undefined ? [] : validateName(`${at}.deviceClassName`, deviceClassName, dns1123Subdomain)),
    ...(driver === undefined ? [] : validateDriverName(driver, `${at}.driver`)),
    ...(pool === undefined ? [] : validatePoolName(pool, `${at}.pool`)),
    ...(device === undefined ? [] : validateLabelName(device, `${at}.device`)),
    ...validateSelectors(selector.selectors, `${at}.selectors`, isStored),
  ];
}
