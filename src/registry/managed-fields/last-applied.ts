/** The annotation in which client-side `kubectl apply` stores the configuration. */

import type { ApiObject } from "../../api/kind.ts";
import { validateAnnotations } from "../../api/meta/validation/object-meta.ts";
import { compare } from "../../schema/apply/compare.ts";
import { difference, type FieldSet } from "../../schema/apply/fieldpath/field-set.ts";
import { IdentityError, type Shape } from "../../schema/apply/shape.ts";
import { toFieldSet } from "../../schema/apply/to-field-set.ts";
import { ShapeError, validateTyped } from "../../schema/apply/typed-validation.ts";
import { stringifyExact } from "../../schema/json/exact-numbers.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
/** Server-side apply updates the annotation for this manager only. */
export const KUBECTL = "kubectl";

/** Updates the annotation of an object that has one. */
export function withLastApplied<T extends ApiObject>(object: T, configuration: Readonly<Record<string, unknown>>): T {
  const { annotations } = object.metadata ?? {};
  if (!annotations?.[LAST_APPLIED]) return object;
  const { [LAST_APPLIED]: _, ...others } = annotations;
  const next = { ...others, [LAST_APPLIED]: `${stringifyExact(sortMembers(withoutLastApplied(configuration)))}\n` };
  const fits = validateAnnotations(next).length === 0;
  return { ...object, metadata: { ...object.metadata, annotations: fits ? next : others } };
}

function withoutLastApplied(configuration: Readonly<Record<string, unknown>>): unknown {
  const { metadata } = configuration;
  if (!isPlainObject(metadata) || !isPlainObject(metadata.annotations)) return configuration;
  const { [LAST_APPLIED]: _, ...annotations } = metadata.annotations;
  return { ...configuration, metadata: { ...metadata, annotations } };
}

function sortMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortMembers);
  if (!isPlainObject(value)) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, sortMembers(member)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * The fields that client-side `kubectl apply` set and that have not changed since; kubectl owns them whatever
 * managedFields contains. Undefined when the annotation is for another version.
 */
export function lastAppliedFields(
  shape: Shape,
  live: unknown,
  annotations: Readonly<Record<string, string>> | undefined,
  apiVersion: string,
): FieldSet | undefined {
  const text = annotations?.[LAST_APPLIED];
  if (!text) return undefined;
  try {
    const applied: unknown = JSON.parse(text);
    if (!isPlainObject(applied) || applied.apiVersion !== apiVersion) return undefined;
    validateTyped(shape, applied);
    const { modified, added, removed } = compare(shape, applied, live);
    return difference(difference(difference(toFieldSet(shape, applied), modified), added), removed);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof ShapeError || error instanceof IdentityError) return undefined;
    throw error;
  }
}
