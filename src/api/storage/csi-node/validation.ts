import { defaultFeatures } from "../../../flags/gate-tables/default-features.ts";
import type { FeatureLookup } from "../../../flags/gates.ts";
import {
  duplicateField,
  type FieldError,
  invalidField,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { validateDriverName } from "../../core/volume/source-validation.ts";
import { qualifiedName, validateName } from "../../meta/validation/names.ts";
import { repeatedIndexes } from "../../meta/validation/repeated.ts";
import { type CSINode, type CSINodeDriver, csiNodeDriver } from "./schema.ts";

const NODE_ID_MAX = 256;

export function validateCSINode({ spec }: CSINode): readonly FieldError[] {
  const names = new Set<string>();
  return validateEach(spec.drivers, (driver, i) => {
    const at = index("spec.drivers", i);
    const repeated = names.has(driver.name);
    names.add(driver.name);
    return [
      ...validateDriver(driver, at),
      ...(repeated ? [duplicateField(child(at, "name"), driver.name)] : []),
      ...validateTopologyKeys(driver.topologyKeys ?? [], at),
    ];
  });
}

function validateDriver({ name, nodeID, allocatable }: CSINodeDriver, path: string): readonly FieldError[] {
  const id = child(path, "nodeID");
  const count = allocatable?.count;
  return [
    ...validateDriverName(name, child(path, "name")),
    ...(nodeID === "" ? [requiredField(id)] : []),
    ...(Buffer.byteLength(nodeID) > NODE_ID_MAX
      ? [invalidField(id, nodeID, `must be ${NODE_ID_MAX} characters or less`)]
      : []),
    ...(count === undefined || count >= 0
      ? []
      : [invalidField(child(path, "allocatable.count"), count, "must be greater than or equal to 0")]),
  ];
}

/** Kubernetes reports errors of topology keys at the driver. */
function validateTopologyKeys(keys: readonly string[], path: string): readonly FieldError[] {
  const repeated = repeatedIndexes(keys);
  return validateEach(keys, (key, i) => [
    ...(key === "" ? [requiredField(path)] : []),
    ...(repeated.has(i) ? [duplicateField(path, key)] : []),
    ...validateName(path, key, qualifiedName),
  ]);
}

/** Drivers may be added and removed, but not changed, except for their allocatable count with a gate. */
export function validateCSINodeUpdate(
  next: CSINode,
  previous: CSINode,
  features: FeatureLookup = defaultFeatures,
): readonly FieldError[] {
  const isCountMutable = features.has("MutableCSINodeAllocatableCount");
  const fixed = ({ allocatable, ...others }: CSINodeDriver): CSINodeDriver =>
    isCountMutable || allocatable === undefined ? others : { ...others, allocatable };
  const byName = Map.groupBy(next.spec.drivers, ({ name }) => name);
  return validateEach(previous.spec.drivers, (before) =>
    (byName.get(before.name) ?? [])
      .filter((driver) => !deepEqual(fixed(driver), fixed(before)))
      .map((driver) => invalidField("spec.drivers", goStruct(csiNodeDriver, fixed(driver)), "field is immutable")),
  );
}
