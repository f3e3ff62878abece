/** Rules for limit ranges: minimum, defaults and maximum must be consistent. */
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index, key } from "../../../schema/value/field-path.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import { compareQuantityTexts, quantityNanos } from "../../meta/quantity.ts";
import { qualifiedName, validateName } from "../../meta/validation/names.ts";
import { isOvercommitAllowed, validateContainerResourceName, validateResourceName } from "../resources/names.ts";
import type { LimitRange, LimitRangeItem } from "./schema.ts";

const TYPES = ["Pod", "Container", "PersistentVolumeClaim"];

export function validateLimitRange({ spec }: LimitRange): readonly FieldError[] {
  const types = new Set<string>();
  return validateEach(spec?.limits ?? [], (item, i) => {
    const at = index("spec.limits", i);
    const repeated = types.has(item.type);
    types.add(item.type);
    return [
      ...validateType(item.type, child(at, "type")),
      ...(repeated ? [duplicateField(child(at, "type"), item.type)] : []),
      ...validateNames(item, at),
      ...validateEach(resourcesOf(item), (name) => validateOrder(item, name, at)),
    ];
  });
}

function validateType(type: string, path: string): readonly FieldError[] {
  const problems = validateName(path, type, qualifiedName);
  if (problems.length > 0 || type.includes("/") || TYPES.includes(type)) return problems;
  return [invalidField(path, type, "must be a standard limit type or fully qualified")];
}

const LISTS = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] as const;
type List = (typeof LISTS)[number];

function validateNames(item: LimitRangeItem, path: string): readonly FieldError[] {
  const ofContainers = item.type === "Pod" || item.type === "Container";
  const check = ofContainers ? validateContainerResourceName : validateResourceName;
  const named = (list: List): readonly FieldError[] =>
    validateEach(Object.keys(item[list] ?? {}), (name) => check(name, key(child(path, list), name)));
  const isClaim = item.type === "PersistentVolumeClaim";
  const bounded = item.min?.storage !== undefined || item.max?.storage !== undefined;
  const detail = "either minimum or maximum storage value is required, but neither was provided";
  return [
    ...named("max"),
    ...named("min"),
    ...(["default", "defaultRequest"] as const).flatMap((list) => {
      if (item.type !== "Pod") return named(list);
      const isSet = Object.keys(item[list] ?? {}).length > 0;
      return isSet ? [forbiddenField(child(path, list), "may not be specified when `type` is 'Pod'")] : [];
    }),
    ...(isClaim && !bounded ? [requiredField(child(path, "limits"), detail)] : []),
    ...named("maxLimitRequestRatio"),
  ];
}

function resourcesOf(item: LimitRangeItem): readonly string[] {
  return [...new Set(LISTS.flatMap((list) => Object.keys(item[list] ?? {})))];
}

/** The first value must not exceed the second. `blamed` is the list of the error's path, `shown` that of its value. */
const ORDER: readonly (readonly [least: List, most: List, blamed: List, shown: List, text: string])[] = [
  ["min", "max", "min", "min", "min value $ is greater than max value $"],
  ["min", "defaultRequest", "defaultRequest", "defaultRequest", "min value $ is greater than default request value $"],
  ["defaultRequest", "max", "defaultRequest", "defaultRequest", "default request value $ is greater than max value $"],
  [
    "defaultRequest",
    "default",
    "defaultRequest",
    "defaultRequest",
    "default request value $ is greater than default limit value $",
  ],
  ["min", "default", "default", "min", "min value $ is greater than default value $"],
  ["default", "max", "default", "max", "default value $ is greater than max value $"],
];

function validateOrder(item: LimitRangeItem, name: string, path: string): readonly FieldError[] {
  // Pods have no defaults; another rule rejects the whole list.
  const valueIn = (list: List): string | undefined =>
    item.type === "Pod" && list.startsWith("default") ? undefined : getMember(item[list], name);
  const errors: FieldError[] = [];
  for (const [least, most, blamed, shown, text] of ORDER) {
    const [low, high] = [valueIn(least), valueIn(most)];
    if (low === undefined || high === undefined || compareQuantityTexts(low, high) <= 0) continue;
    const detail = text.replace("$", low).replace("$", high);
    errors.push(invalidField(key(child(path, blamed), name), shown === least ? low : high, detail));
  }
  errors.push(...validateRatio(item, name, key(child(path, "maxLimitRequestRatio"), name)));
  const [limit, request] = [valueIn("default"), valueIn("defaultRequest")];
  if (
    limit !== undefined &&
    request !== undefined &&
    !isOvercommitAllowed(name) &&
    compareQuantityTexts(limit, request) !== 0
  ) {
    const detail = `default value ${limit} must equal to defaultRequest value ${request} in ${name}`;
    errors.push(invalidField(key(child(path, "defaultRequest"), name), request, detail));
  }
  return errors;
}

/** The ratio must not exceed that of `max` to `min`. */
function validateRatio(item: LimitRangeItem, name: string, path: string): readonly FieldError[] {
  const ratio = getMember(item.maxLimitRequestRatio, name);
  if (ratio === undefined) return [];
  const errors: FieldError[] = [];
  if (compareQuantityTexts(ratio, "1") < 0) errors.push(invalidField(path, ratio, `ratio ${ratio} is less than 1`));
  const [least, most] = [getMember(item.min, name), getMember(item.max, name)];
  if (least === undefined || most === undefined) return errors;
  const bound = Number(quantityNanos(most)) / Number(quantityNanos(least));
  if (Number(quantityNanos(ratio)) / 1e9 > bound) {
    errors.push(invalidField(path, ratio, `ratio ${ratio} is greater than max/min = ${bound.toFixed(6)}`));
  }
  return errors;
}
