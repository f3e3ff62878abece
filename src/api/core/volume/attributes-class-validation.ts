/** Rules for `volumeAttributesClassName`, which claims and volumes have. */
import type { FeatureLookup } from "../../../flags/gates.ts";
import { type FieldError, forbiddenField, validateEach } from "../../../schema/validation/field-error.ts";
import { dns1123Subdomain, validateName } from "../../meta/validation/names.ts";

export const ATTRIBUTES_CLASS_GATE = "VolumeAttributesClass";

/** Either spec. */
export interface AttributesClassSpec {
  readonly volumeAttributesClassName?: string | undefined;
}

/** While the gate is off, the rules apply to objects that have a class already. */
export function validatesAttributesClass(previous: AttributesClassSpec | undefined, features: FeatureLookup): boolean {
  return features.has(ATTRIBUTES_CLASS_GATE) || previous?.volumeAttributesClassName !== undefined;
}

/** Accepts an absent or empty name. */
export function validateAttributesClassName(name: string | undefined, path: string): readonly FieldError[] {
  return name ? validateName(path, name, dns1123Subdomain) : [];
}

/** A class may be replaced by another, but not removed. `keepsName` rejects an empty name as well. */
export function validateAttributesClassUpdate(
  next: AttributesClassSpec,
  previous: AttributesClassSpec,
  features: FeatureLookup,
  keepsName: boolean,
): readonly FieldError[] {
  const [name, before] = [next.volumeAttributesClassName, previous.volumeAttributesClassName];
  if (name === before) return [];
  const details: string[] = [];
  if (!features.has(ATTRIBUTES_CLASS_GATE)) {
    details.push("update is forbidden when the VolumeAttributesClass feature gate is disabled");
  }
  if (before !== undefined && name === undefined) details.push("update from non-nil value to nil is forbidden");
  if (before !== undefined && name === "" && keepsName) {
    details.push("update from non-nil value to an empty string is forbidden");
  }
  return validateEach(details, (detail) => [forbiddenField("spec.volumeAttributesClassName", detail)]);
}
