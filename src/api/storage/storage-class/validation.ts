/** Rules for storage classes: provisioner, parameters, policies, topologies. */

import { canonicalJson } from "../../../schema/json/canonical-json.ts";
import {
  duplicateField,
  errorsMax,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  tooLong,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import type { TopologySelectorTerm } from "../../core/node/topology-selector.ts";
import { qualifiedName, validateName } from "../../meta/validation/names.ts";
import { repeatedIndexes } from "../../meta/validation/repeated.ts";
import type { StorageClass } from "./schema.ts";

const PARAMETERS_MAX = 512;
const PARAMETERS_MAX_BYTES = 256 * 1024;

export function validateStorageClass(storageClass: StorageClass): readonly FieldError[] {
  return [
    ...validateDriver(storageClass.provisioner, "provisioner"),
    ...validateParameters(storageClass.parameters ?? {}),
    ...validatePolicies(storageClass),
    ...validateTopologies(storageClass.allowedTopologies ?? [], "allowedTopologies"),
  ];
}

/** A provisioner or driver: a qualified name in any case. */
export function validateDriver(name: string, path: string): readonly FieldError[] {
  return name === "" ? [requiredField(path)] : validateName(path, name.toLowerCase(), qualifiedName);
}

export function validateParameters(parameters: Readonly<Record<string, string>>): readonly FieldError[] {
  const entries = Object.entries(parameters);
  if (entries.length > PARAMETERS_MAX) return [tooLong("parameters", PARAMETERS_MAX)];
  const bytes = entries.reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0);
  return [
    ...("" in parameters ? [invalidField("parameters", "", "field can not be empty.")] : []),
    ...(bytes > PARAMETERS_MAX_BYTES ? [tooLong("parameters", PARAMETERS_MAX_BYTES)] : []),
  ];
}

function validatePolicies({ reclaimPolicy, volumeBindingMode }: StorageClass): readonly FieldError[] {
  const policies = ["Delete", "Retain"];
  const modes = ["Immediate", "WaitForFirstConsumer"];
  const errors: FieldError[] = [];
  if (reclaimPolicy && !policies.includes(reclaimPolicy)) {
    errors.push(notSupported("reclaimPolicy", reclaimPolicy, policies));
  }
  if (volumeBindingMode === undefined) errors.push(requiredField("volumeBindingMode"));
  else if (!modes.includes(volumeBindingMode)) errors.push(notSupported("volumeBindingMode", volumeBindingMode, modes));
  return errors;
}

/** Topology terms must be unique and not empty. */
function validateTopologies(terms: readonly TopologySelectorTerm[], path: string): readonly FieldError[] {
  const meanings = terms.map(({ matchLabelExpressions = [] }) =>
    Object.fromEntries(matchLabelExpressions.map((e) => [e.key, [...new Set(e.values)].sort()])),
  );
  const earlier = new Map<string, number>();
  return validateEach(terms, (term, i) => {
    const meaning = canonicalJson(meanings[i]);
    // Kubernetes compares each term with those before it and with as many empty ones as there are terms.
    const equals = earlier.get(meaning) ?? (meaning === "{}" ? terms.length : 0);
    earlier.set(meaning, equals + 1);
    const duplicate = duplicateField(child(index(path, i), "matchLabelExpressions"), "");
    return [...validateTerm(term, index(path, i)), ...Array<FieldError>(Math.min(equals, errorsMax)).fill(duplicate)];
  });
}

function validateTerm(term: TopologySelectorTerm, path: string): readonly FieldError[] {
  const keys = new Set<string>();
  return validateEach(term.matchLabelExpressions ?? [], ({ key, values }, i) => {
    const at = index(child(path, "matchLabelExpressions"), i);
    const list = child(at, "values");
    const errors: FieldError[] = values.length === 0 ? [requiredField(list)] : [];
    errors.push(...validateEach(repeatedIndexes(values), (j) => [duplicateField(index(list, j), values[j])]));
    errors.push(...validateName(child(at, "key"), key, qualifiedName));
    if (keys.has(key)) errors.push(duplicateField(child(at, "key"), key));
    keys.add(key);
    return errors;
  });
}

export function validateStorageClassUpdate(next: StorageClass, previous: StorageClass): readonly FieldError[] {
  const forbid = (field: string): FieldError => forbiddenField(field, `updates to ${field} are forbidden.`);
  const errors: FieldError[] = [];
  if (!deepEqual(next.parameters ?? {}, previous.parameters ?? {})) errors.push(forbid("parameters"));
  if (next.provisioner !== previous.provisioner) errors.push(forbid("provisioner"));
  const [is, was] = [next.reclaimPolicy, previous.reclaimPolicy];
  if (is !== undefined && was !== undefined && is !== was) errors.push(forbid("reclaimPolicy"));
  if (next.volumeBindingMode !== previous.volumeBindingMode) {
    errors.push(invalidField("volumeBindingMode", next.volumeBindingMode, "field is immutable"));
  }
  return errors;
}
