/** Converts between `metadata.managedFields` and managers with their field sets. */
import type { ApiObject } from "../../api/kind.ts";
import type { ManagedFieldsEntry } from "../../api/meta/object-meta.ts";
import { parseApiVersion, svcGroup } from "../../api/scheme.ts";
import { canonicalize, type FieldSet } from "../../schema/apply/fieldpath/field-set.ts";
import { parseFields } from "../../schema/apply/fieldpath/parse-fields.ts";
import type { ManagedFields, VersionedSet } from "../../schema/apply/managers.ts";
import { internFieldsV1 } from "../../schema/value/fields-v1-cache.ts";
import type { Steps } from "../../std/async/steps.ts";

export type Operation = "Apply" | "Update";

/** Owns the fields of an object without managedFields when it is first applied. */
export const BEFORE_FIRST = "before-first-apply";

/** One manager of an object and the fields it owns. */
export interface Manager extends VersionedSet {
  readonly manager: string;
  readonly operation: Operation;
  /** With the group alias of the request; `version` is the same for both aliases. */
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string | undefined;
  /** The unchanged entry that this was read from. */
  readonly entry?: ManagedFieldsEntry;
}

/** The apiVersion with the canonical group alias. */
export function versionOf(apiVersion: string): string {
  const parsed = parseApiVersion(apiVersion);
  return parsed === undefined ? apiVersion : `${svcGroup(parsed.group)}/${parsed.version}`;
}

/** The key of a manager. An apply manager has one entry for all versions. */
export function identityOf(manager: Omit<Manager, "fields" | "time" | "entry" | "applied">): string {
  const { manager: name, operation, version, subresource } = manager;
  return JSON.stringify({ manager: name, operation, version: operation === "Apply" ? "" : version, subresource });
}

/** The object with these managedFields, or without any. */
export function withManagedFields<T extends ApiObject>(
  object: T,
  entries: readonly ManagedFieldsEntry[] | undefined,
): T {
  const { managedFields: _, ...metadata } = object.metadata ?? {};
  return { ...object, metadata: entries === undefined ? metadata : { ...metadata, managedFields: entries } };
}
export function withFields(manager: Manager, fields: FieldSet): Manager {
  const { entry: _, ...rest } = manager;
  return { ...rest, fields };
}

/** Undefined when an entry is invalid. */
export function* readManagers(
  entries: readonly ManagedFieldsEntry[] = [],
  isLong = true,
): Steps<ManagedFields<Manager> | undefined> {
  const managers = new Map<string, Manager>();
  for (const entry of entries) {
    const manager = readManager(entry);
    if (manager === undefined) return undefined;
    managers.set(identityOf(manager), manager);
    if (isLong) yield;
  }
  return managers;
}

function readManager(entry: ManagedFieldsEntry): Manager | undefined {
  const { manager = "", operation, apiVersion = "", fieldsType, fieldsV1, subresource = "", time } = entry;
  if (operation !== "Apply" && operation !== "Update") return undefined;
  if (apiVersion === "" || fieldsType !== "FieldsV1") return undefined;
  const version = versionOf(apiVersion);
  try {
    const fields = parseFields(fieldsV1);
    return {
      manager,
      operation,
      apiVersion,
      version,
      applied: operation === "Apply",
      fields,
      subresource,
      time,
      entry,
    };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Applies before updates, then oldest first. Unchanged managers keep their entry object. */
export function* writeManagers(
  managers: ManagedFields<Manager>,
  isLong: boolean,
): Steps<readonly ManagedFieldsEntry[] | undefined> {
  if (managers.size === 0) return undefined;
  const entries: ManagedFieldsEntry[] = [];
  for (const manager of [...managers.values()].sort(compareManagers)) {
    entries.push(isReusable(manager) ? manager.entry : yield* writeManager(manager, isLong));
    if (isLong) yield;
  }
  return entries;
}

function isReusable(manager: Manager): manager is Manager & { readonly entry: ManagedFieldsEntry } {
  const { apiVersion, time, entry } = manager;
  return entry !== undefined && entry.time === time && entry.apiVersion === apiVersion;
}

function* writeManager(from: Manager, isLong: boolean): Steps<ManagedFieldsEntry> {
  const { manager, operation, apiVersion, time, fields, subresource } = from;
  const canonical = canonicalize(fields);
  if (isLong) yield;
  return {
    ...(manager === "" ? {} : { manager }),
    operation,
    apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: "FieldsV1",
    fieldsV1: internFieldsV1(canonical),
    ...(subresource === "" ? {} : { subresource }),
  };
}

function compareManagers(a: Manager, b: Manager): number {
  return (
    compare(a.operation, b.operation) ||
    secondsOf(a) - secondsOf(b) ||
    compare(a.manager, b.manager) ||
    compare(a.apiVersion, b.apiVersion) ||
    compare(a.subresource, b.subresource)
  );
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

export function secondsOf({ time }: Manager): number {
  return time === undefined ? 0 : Math.floor(Date.parse(time) / 1000);
}
