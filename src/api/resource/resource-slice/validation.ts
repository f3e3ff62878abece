/** Rules for slices: the pool, the nodes of its devices, and the devices with the counters that they share. */

import { list } from "../../../schema/define.ts";
import {
  type FieldError,
  invalidField,
  requiredField,
  tooLong,
  unquoted,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { index } from "../../../schema/value/field-path.ts";
import { type NodeSelector, nodeSelectorTerm } from "../../core/node/selector.ts";
import { validateNodeSelector } from "../../core/pod-spec/scheduling-validation.ts";
import { validateDriverName } from "../../core/volume/source-validation.ts";
import { validateImmutableField } from "../../meta/validation/immutable.ts";
import { dns1123Subdomain, validateName } from "../../meta/validation/names.ts";
import {
  QUALIFIED_NAME_MAX,
  validateLabelName,
  validateList,
  validateMap,
  validatePoolName,
  validateQualifiedName,
  validateSet,
} from "../common-validation.ts";
import { validateTaint } from "../device-taints.ts";
import type {
  CounterSet,
  Device,
  DeviceAttribute,
  DeviceCounterConsumption,
  ResourcePool,
  ResourceSlice,
  ResourceSliceSpec,
} from "../schemas.ts";

const DEVICES_MAX = 128;
const ATTRIBUTES_AND_CAPACITIES_MAX = 32;
const TAINTS_MAX = 4;
const COUNTERS_PER_DEVICE_MAX = 32;
const COUNTERS_PER_SLICE_MAX = 1024;
const SHARED_COUNTERS_MAX = 32;
const ATTRIBUTE_MAX = 64;
const LABEL_MAX = 63;

const noProblems = (): readonly FieldError[] => [];

export function validateSlice({ spec }: ResourceSlice, previous?: ResourceSlice): readonly FieldError[] {
  const counters = countersBySet(spec.sharedCounters);
  return [
    ...validateDriverName(spec.driver, "spec.driver"),
    ...validatePool(spec.pool, "spec.pool"),
    ...(previous === undefined ? [] : validateIdentity(spec, previous.spec)),
    ...validateNodes(spec),
    ...validateSet(
      spec.devices,
      DEVICES_MAX,
      "spec.devices",
      (device, at) => validateDevice(device, at, counters, spec.perDeviceNodeSelection === true),
      ({ name }) => name,
      "name",
    ),
    ...validateTotals(spec),
    ...validateSet(spec.sharedCounters, -1, "spec.sharedCounters", validateCounterSet, ({ name }) => name, "name"),
  ];
}

function validateIdentity(next: ResourceSliceSpec, previous: ResourceSliceSpec): readonly FieldError[] {
  return [
    ...validateImmutableField(next.pool.name, previous.pool.name, "spec.pool.name"),
    ...validateImmutableField(next.driver, previous.driver, "spec.driver"),
    ...validateImmutableField(next.nodeName, previous.nodeName, "spec.nodeName"),
  ];
}

function validatePool({ name, generation, resourceSliceCount }: ResourcePool, path: string): readonly FieldError[] {
  const count = `${path}.resourceSliceCount`;
  return [
    ...validatePoolName(name, `${path}.name`),
    ...(resourceSliceCount > 0 ? [] : [invalidField(count, resourceSliceCount, "must be greater than zero")]),
    ...(generation >= 0
      ? []
      : [invalidField(`${path}.generation`, generation, "must be greater than or equal to zero")]),
  ];
}

const NODES = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
const TRUE_ONLY = "must be either unset or set to true";

function validateNodes(spec: ResourceSliceSpec): readonly FieldError[] {
  const { nodeName, nodeSelector, allNodes, perDeviceNodeSelection } = spec;
  const set = [
    ...(nodeName ? ["`nodeName`"] : []),
    ...(nodeSelector === undefined ? [] : ["`nodeSelector`"]),
    ...(allNodes ? ["`allNodes`"] : []),
    ...(perDeviceNodeSelection ? ["`perDeviceNodeSelection`"] : []),
  ];
  return [
    ...validateNodeName(nodeName, "spec.nodeName", "must be either unset or set to a non-empty string"),
    ...(nodeSelector === undefined ? [] : validateSliceSelector(nodeSelector)),
    ...(allNodes === false ? [invalidField("spec.allNodes", false, TRUE_ONLY)] : []),
    ...(perDeviceNodeSelection === false ? [invalidField("spec.perDeviceNodeSelection", false, TRUE_ONLY)] : []),
    ...(set.length === 0 ? [requiredField("spec", NODES)] : []),
    ...(set.length > 1 ? [invalidField("spec", `{${set.join(", ")}}`, `${NODES}, but multiple fields are set`)] : []),
  ];
}

function validateSliceSelector(selector: NodeSelector): readonly FieldError[] {
  const at = "spec.nodeSelector";
  const terms = selector.nodeSelectorTerms;
  return [
    ...validateNodeSelector(selector, at),
    ...(terms.length === 1
      ? []
      : [
          invalidField(
            `${at}.nodeSelectorTerms`,
            goStruct(list(nodeSelectorTerm), terms),
            "must have exactly one node selector term",
          ),
        ]),
  ];
}

function validateNodeName(name: string | undefined, path: string, empty: string): readonly FieldError[] {
  if (name === undefined) return [];
  return name === "" ? [invalidField(path, name, empty)] : validateName(path, name, dns1123Subdomain);
}

function validateTotals({ devices = [], sharedCounters = [] }: ResourceSliceSpec): readonly FieldError[] {
  const inDevices = devices.flatMap(({ consumesCounters = [] }) => consumesCounters).reduce(countCounters, 0);
  const shared = sharedCounters.reduce(countCounters, 0);
  const most = (what: string, limit: number) => `the total number of ${what} must not exceed ${limit}`;
  return [
    ...(inDevices > COUNTERS_PER_SLICE_MAX
      ? [invalidField("spec.devices", inDevices, most("counters in devices", COUNTERS_PER_SLICE_MAX))]
      : []),
    ...(shared > SHARED_COUNTERS_MAX
      ? [invalidField("spec.sharedCounters", shared, most("shared counters", SHARED_COUNTERS_MAX))]
      : []),
  ];
}

function countCounters(total: number, { counters }: Pick<CounterSet, "counters">): number {
  return total + Object.keys(counters ?? {}).length;
}

type CountersBySet = ReadonlyMap<string, ReadonlySet<string>>;

function countersBySet(sets: readonly CounterSet[] = []): CountersBySet {
  return new Map(sets.map(({ name, counters }) => [name, new Set(Object.keys(counters ?? {}))]));
}

function validateCounterSet({ name, counters }: CounterSet, path: string): readonly FieldError[] {
  const at = `${path}.name`;
  return [
    ...(name === "" ? [requiredField(at)] : validateLabelName(name, at)),
    ...validateCounters(counters, `${path}.counters`),
  ];
}

function validateCounters(counters: CounterSet["counters"] | undefined, path: string): readonly FieldError[] {
  if (Object.keys(counters ?? {}).length === 0) return [requiredField(path)];
  return validateMap(counters, path, LABEL_MAX, validateLabelName, noProblems);
}

function validateDevice(
  device: Device,
  path: string,
  shared: CountersBySet,
  isPerDevice: boolean,
): readonly FieldError[] {
  const { name, attributes = {}, capacity = {}, taints, consumesCounters = [] } = device;
  const size = Object.keys(attributes).length + Object.keys(capacity).length;
  const counters = consumesCounters.reduce(countCounters, 0);
  const most = (what: string, limit: number) => `the total number of ${what} must not exceed ${limit}`;
  return [
    ...validateLabelName(name, `${path}.name`),
    ...(size > ATTRIBUTES_AND_CAPACITIES_MAX
      ? [invalidField(path, size, most("attributes and capacities", ATTRIBUTES_AND_CAPACITIES_MAX))]
      : []),
    ...validateMap(attributes, `${path}.attributes`, QUALIFIED_NAME_MAX, validateQualifiedName, validateAttribute),
    ...validateMap(capacity, `${path}.capacity`, QUALIFIED_NAME_MAX, validateQualifiedName, noProblems),
    ...validateList(taints, TAINTS_MAX, `${path}.taints`, validateTaint),
    ...validateSet(
      consumesCounters,
      -1,
      `${path}.consumesCounters`,
      validateConsumption,
      ({ counterSet }) => counterSet,
      "counterSet",
    ),
    ...(counters > COUNTERS_PER_DEVICE_MAX
      ? [invalidField(path, counters, most("counters", COUNTERS_PER_DEVICE_MAX))]
      : []),
    ...consumesCounters.flatMap((consumption, i) =>
      validateReferences(consumption, index(`${path}.consumesCounters`, i), shared),
    ),
    ...(isPerDevice ? validateDeviceNodes(device, path) : forbidDeviceNodes(device, path)),
  ];
}

function validateConsumption({ counterSet, counters }: DeviceCounterConsumption, path: string): readonly FieldError[] {
  return [
    ...(counterSet === "" ? [requiredField(`${path}.counterSet`)] : []),
    ...validateCounters(counters, `${path}.counters`),
  ];
}

function validateReferences(
  { counterSet, counters }: DeviceCounterConsumption,
  path: string,
  shared: CountersBySet,
): readonly FieldError[] {
  const known = shared.get(counterSet);
  if (known === undefined) {
    const detail = "must reference a counterSet defined in the ResourceSlice sharedCounters";
    return [invalidField(`${path}.counterSet`, counterSet, detail)];
  }
  const detail = "must reference a counter defined in the ResourceSlice sharedCounters";
  return Object.keys(counters ?? {})
    .filter((name) => !known.has(name))
    .map((name) => invalidField(`${path}.counters`, name, detail));
}

const DEVICE_NODES =
  "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";

function validateDeviceNodes({ nodeName, nodeSelector, allNodes }: Device, path: string): readonly FieldError[] {
  const set = [
    ...(nodeName ? ["`nodeName`"] : []),
    ...(nodeSelector === undefined ? [] : ["`nodeSelector`"]),
    ...(allNodes ? ["`allNodes`"] : []),
  ];
  return [
    ...validateNodeName(nodeName, `${path}.nodeName`, "must not be empty"),
    ...(nodeSelector === undefined ? [] : validateNodeSelector(nodeSelector, `${path}.nodeSelector`)),
    ...(allNodes === false ? [invalidField(`${path}.allNodes`, false, TRUE_ONLY)] : []),
    ...(set.length === 0 ? [requiredField(path, DEVICE_NODES)] : []),
    ...(set.length > 1 ? [invalidField(path, `{${set.join(", ")}}`, DEVICE_NODES)] : []),
  ];
}

function forbidDeviceNodes({ nodeName, nodeSelector, allNodes }: Device, path: string): readonly FieldError[] {
  if (nodeName === undefined && nodeSelector === undefined && allNodes === undefined) return [];
  const detail =
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
  return [invalidField(path, null, detail)];
}

const NUMBER = "(0|[1-9]\\d*)";
const PRERELEASE = "(0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)";
const BUILD = "[0-9a-zA-Z-]+";
const SEMANTIC_VERSION = new RegExp(
  `^${NUMBER}\\.${NUMBER}\\.${NUMBER}(-${PRERELEASE}(\\.${PRERELEASE})*)?(\\+${BUILD}(\\.${BUILD})*)?$`,
);

function validateAttribute(attribute: DeviceAttribute, path: string): readonly FieldError[] {
  const { string: text, version } = attribute;
  const values = Object.values(attribute).filter((value) => value !== undefined);
  const one = "exactly one value must be specified";
  return [
    ...(text !== undefined && Buffer.byteLength(text) > ATTRIBUTE_MAX
      ? [tooLong(`${path}.string`, ATTRIBUTE_MAX)]
      : []),
    ...(version === undefined ? [] : validateVersion(version, `${path}.version`)),
    ...(values.length === 0 ? [requiredField(path, one)] : []),
    ...(values.length > 1 ? [invalidField(path, unquoted(JSON.stringify(attribute)), one)] : []),
  ];
}

function validateVersion(version: string, path: string): readonly FieldError[] {
  return [
    ...(SEMANTIC_VERSION.test(version)
      ? []
      : [invalidField(path, version, "must be a string compatible with semver.org spec 2.0.0")]),
    ...(Buffer.byteLength(version) > ATTRIBUTE_MAX ? [tooLong(path, ATTRIBUTE_MAX)] : []),
  ];
}
