/** Who manages which fields, kept up with every write that is no apply. */
import type { ApiObject } from "../../api/kind.ts";
import type { ManagedFieldsEntry } from "../../api/meta/object-meta.ts";
import { formatApiVersion } from "../../api/scheme.ts";
import { isEmptySet, noFields, union } from "../../schema/apply/field-set.ts";
import { toJsonValue } from "../../schema/apply/json-value.ts";
import { type ManagerContext, type ManagedFields, updateManagers } from "../../schema/apply/managers.ts";
import { IdentityError } from "../../schema/apply/shape.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import { type Conversions, withConversions } from "./conversions.ts";
import {
  identityOf,
  type Manager,
  type Operation,
  readManagers,
  secondsOf,
  versionOf,
  withFields,
  writeManagers,
} from "./entries.ts";
import { objectVersions } from "./object-versions.ts";
import type { Registry, Scope } from "../registry.ts";

/** Who writes, and through what. */
export interface FieldManagerOptions {
  /** Nobody keeps book where it is absent. */
  readonly fieldManager?: string | undefined;
  /** Through which subresource; none when absent. */
  readonly subresource?: string | undefined;
  /** No time is noted, as Kubernetes notes none of who scales. */
  readonly untimed?: boolean | undefined;
  /** Where a webhook knows how versions differ. */
  readonly conversions?: Conversions | undefined;
}

/** Entries for updates that one object has; the oldest are put together beyond that. */
const UPDATERS_MAX = 10;
const ANCIENT = "ancient-changes";
/** The manager of what the writing one changes, until it is added to what it managed before. */
const CURRENT = "current";

/**
 * `next` with its book of who manages what brought up to date; `previous` is undefined for a new object. An object that
 * has no book gets none by an update.
 */
export function updateManagedFields<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  next: T,
  previous: T | undefined,
  writer: FieldManagerOptions,
): T {
  if (writer.fieldManager === undefined) return untracked(next, previous);
  const managers = readLiveManagers(next, previous, writer.subresource ?? "");
  if (managers.size === 0 && previous !== undefined) return withEntries(next, undefined);
  try {
    const live = previous ?? ({} as T);
    const after = afterUpdate(registry, scope, managers, live, next, writer);
    return withEntries(next, writeManagers(after));
  } catch (error) {
    // What cannot be told apart is not managed; validation has its own word on it.
    if (error instanceof IdentityError) return withEntries(next, undefined);
    throw error;
  }
}

/**
 * The same where a webhook may have to be asked. When it fails nobody can tell who manages what: the object loses its
 * book, as in Kubernetes, rather than the client its write.
 */
export function trackManagedFields<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  next: T,
  previous: T | undefined,
  writer: FieldManagerOptions,
): MaybePromise<T> {
  if (registry.kind.converter === undefined) return updateManagedFields(registry, scope, next, previous, writer);
  const object = withConversions(registry.kind, (conversions) => {
    return updateManagedFields(registry, scope, next, previous, { ...writer, conversions });
  });
  if (!(object instanceof Promise)) return object;
  return object.catch((error: unknown) => {
    registry.deps.log.error("Cannot tell who manages the fields of an object", error, { kind: registry.kind.kind });
    return withEntries(next, undefined);
  });
}

/** The server's own writes leave the book as it is. */
function untracked<T extends ApiObject>(next: T, previous: T | undefined): T {
  const entries = previous?.metadata?.managedFields;
  return entries === undefined || next.metadata?.managedFields !== undefined ? next : withEntries(next, entries);
}

/**
 * A client may send the book changed, or reset it by an empty list or a single empty entry. One that does not send it,
 * or sends one that cannot be read, leaves it as it is.
 */
function readLiveManagers(next: ApiObject, previous: ApiObject | undefined, subresource: string): ManagedFields<Manager> {
  const sent = next.metadata?.managedFields;
  const live = previous?.metadata?.managedFields;
  if (subresource === "" && sent !== undefined) {
    if (sent.length === 0 || (sent.length === 1 && isEmptyEntry(sent[0]!))) return new Map();
    const managers = readManagers(withKnown(sent, live));
    if (managers !== undefined && managers.size > 0) return managers;
  }
  return readManagers(live) ?? new Map();
}

function isEmptyEntry(entry: ManagedFieldsEntry): boolean {
  return Object.values(entry).every((value) => value === undefined || value === "");
}

/** Entries that were sent back as they are stored are read but once. */
function withKnown(
  sent: readonly ManagedFieldsEntry[],
  live: readonly ManagedFieldsEntry[] = [],
): readonly ManagedFieldsEntry[] {
  return sent.map((entry, place) => {
    const same = live[place];
    return same !== undefined && deepEqual(entry, same) ? same : entry;
  });
}

export function withEntries<T extends ApiObject>(object: T, entries: readonly ManagedFieldsEntry[] | undefined): T {
  const { managedFields: _, ...metadata } = object.metadata ?? {};
  return { ...object, metadata: entries === undefined ? metadata : { ...metadata, managedFields: entries } };
}

/** The managers of `live` once `next` has replaced it. */
export function afterUpdate<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  managers: ManagedFields<Manager>,
  live: T,
  next: T,
  { fieldManager = "", subresource = "", untimed = false, conversions }: FieldManagerOptions,
): ManagedFields<Manager> {
  const manager = managerOf(registry, scope, "Update", fieldManager, subresource);
  const change = { ...changeOf(registry, managers, live, manager, conversions), name: CURRENT };
  const after = new Map(updateManagers(change, toJson(registry, next)));
  const fields = after.get(CURRENT)?.fields ?? noFields;
  after.delete(CURRENT);
  if (!isEmptySet(fields)) {
    const identity = identityOf(manager);
    const before = after.get(identity);
    const own = union(fields, before?.fields ?? noFields);
    after.set(identity, { ...manager, fields: own, time: untimed ? before?.time : registry.timestamp() });
  }
  return mergeOldestUpdaters(after);
}

export function managerOf<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  operation: Operation,
  name: string,
  subresource: string,
): Manager {
  const apiVersion = formatApiVersion(scope.group, registry.kind.version);
  return {
    manager: name === "" ? "unknown" : name,
    operation,
    apiVersion,
    version: versionOf(apiVersion),
    applied: operation === "Apply",
    subresource,
    fields: noFields,
    time: undefined,
  };
}

export function changeOf<T extends ApiObject>(
  registry: Registry<T>,
  managers: ManagedFields<Manager>,
  live: T,
  manager: Manager,
  conversions: Conversions | undefined,
): ManagerContext<Manager> {
  return {
    versions: objectVersions(registry, manager.subresource, conversions),
    live: toJson(registry, live),
    managers,
    name: identityOf(manager),
    manager,
    withFields,
  };
}

/** The object as its fields are counted: in JSON's form, without its own book. */
export function toJson<T extends ApiObject>(registry: Registry<T>, object: T): unknown {
  return toJsonValue(registry.kind.schema, object.metadata?.managedFields ? withEntries(object, undefined) : object);
}

/** The oldest updaters of a version become one when there are too many. */
function mergeOldestUpdaters(managers: ManagedFields<Manager>): ManagedFields<Manager> {
  const updaters = [...managers].filter(([, manager]) => !manager.applied);
  if (updaters.length <= UPDATERS_MAX) return managers;
  updaters.sort(([a, one], [b, other]) => secondsOf(one) - secondsOf(other) || (a < b ? -1 : 1));
  const result = new Map(managers);
  const first = new Map<string, string>();
  let left = updaters.length;
  for (const [identity, manager] of updaters) {
    if (left <= UPDATERS_MAX) break;
    const ancient = { ...manager, manager: ANCIENT, subresource: "" };
    const bucket = identityOf(ancient);
    const earlier = first.get(manager.version);
    if (earlier === undefined) {
      first.set(manager.version, identity);
      continue;
    }
    const collected = result.get(bucket) ?? result.get(earlier)!;
    if (!result.has(bucket)) result.delete(earlier);
    result.delete(identity);
    result.set(bucket, { ...withFields(ancient, union(manager.fields, collected.fields)), time: manager.time });
    left--;
  }
  return result;
}

/** When only times differ, nothing happened: the object stays what it was. */
export function keepUnchangedTimes<T extends ApiObject>(next: T, previous: T): T {
  const now = next.metadata?.managedFields ?? [];
  const old = previous.metadata?.managedFields ?? [];
  if (now.length === 0 || now.length !== old.length) return next;
  if (!now.every((entry, place) => deepEqual({ ...entry, time: undefined }, { ...old[place], time: undefined }))) {
    return next;
  }
  const { metadata: nextMetadata, ...rest } = withEntries(next, old);
  const { metadata, ...previousRest } = previous;
  return deepEqual(nextMetadata, metadata) && deepEqual(rest, previousRest) ? withEntries(next, old) : next;
}
