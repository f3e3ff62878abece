/** Field management of every write but apply: the manager owns the fields that its write changes. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { ManagedFieldsEntry } from "../../api/meta/object-meta.ts";
import { formatApiVersion } from "../../api/scheme.ts";
import { isEmptySet, noFields, union } from "../../schema/apply/fieldpath/field-set.ts";
import { toCreatedJsonValue, toJsonValue } from "../../schema/apply/json-value.ts";
import { type ManagedFields, type ManagerContext, updateManagers } from "../../schema/apply/managers.ts";
import { IdentityError } from "../../schema/apply/shape.ts";
import { areLong } from "../../schema/value/check-values.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import { runSteps, type Steps } from "../../std/async/steps.ts";
import type { WriteRequest } from "../write/request.ts";
import { type Conversions, withConversions } from "./conversions.ts";
import {
  identityOf,
  type Manager,
  type Operation,
  readManagers,
  secondsOf,
  versionOf,
  withFields,
  withManagedFields,
  writeManagers,
} from "./entries.ts";
import { objectVersions } from "./object-versions.ts";
import { countOf, ScaleManagers } from "./scale-managers.ts";

/** Update managers of one object; beyond that the oldest are merged. */
const UPDATERS_MAX = 10;
const ANCIENT = "ancient-changes";
/** Temporary name of the updating manager, until its new fields are merged into those it has. */
const CURRENT = "current";

/**
 * Returns the object with its managedFields updated; `previous` is undefined for a create. An update adds none to an
 * object that has none. When the conversion webhook fails the object loses its managedFields, as in Kubernetes: the
 * write succeeds.
 */
export function trackManagedFields<T extends ApiObject>(
  request: WriteRequest<T>,
  next: T,
  previous: T | undefined,
): MaybePromise<T> {
  if (request.hasManagedFields === true) return next;
  const { kind, deps } = request.registry;
  const object = withConversions(kind, (conversions) => updateSteps(request, next, previous, conversions));
  if (kind.converter === undefined || !(object instanceof Promise)) return object;
  return object.catch((error: unknown) => {
    deps.log.error("Failed to compute managed fields", error, { kind: kind.kind });
    return withManagedFields(next, undefined);
  });
}

/** As `trackManagedFields`, at once, for a small object of a kind whose versions no webhook converts. */
export function updateManagedFields<T extends ApiObject>(
  request: WriteRequest<T>,
  next: T,
  previous: T | undefined,
): T {
  return runSteps(updateSteps(request, next, previous, undefined));
}

function* updateSteps<T extends ApiObject>(
  request: WriteRequest<T>,
  next: T,
  previous: T | undefined,
  conversions: Conversions | undefined,
): Steps<T> {
  const { fieldManager, subresource = "", view } = request.options;
  if (fieldManager === undefined) return keepManagedFields(next, previous);
  const isLong = areLong(next, previous);
  const managers = yield* readLiveManagers(next, previous, subresource, isLong);
  if (isLong) yield;
  if (managers.size === 0 && previous !== undefined) return withManagedFields(next, undefined);
  const live = previous ?? ({} as T);
  if (view !== undefined) {
    const writer = newManager(request, "Update", fieldManager);
    const scale = new ScaleManagers(request.registry, managers);
    const after = scale.update(writer, countOf(view.toView(live)), countOf(view.toView(next)));
    return withManagedFields(next, yield* writeManagers(after, isLong));
  }
  try {
    const writer = { fieldManager, conversions, isLong };
    const after = yield* managersAfterUpdate(request, managers, live, next, writer);
    return withManagedFields(next, yield* writeManagers(after, isLong));
  } catch (error) {
    // Items of a list that are not unique have no path; validation reports them.
    if (error instanceof IdentityError) return withManagedFields(next, undefined);
    throw error;
  }
}

/** A write of the server itself keeps the managedFields. */
function keepManagedFields<T extends ApiObject>(next: T, previous: T | undefined): T {
  const entries = previous?.metadata?.managedFields;
  return entries === undefined || next.metadata?.managedFields !== undefined ? next : withManagedFields(next, entries);
}

/**
 * A client may send changed managedFields, or reset them with an empty list or one empty entry. Absent or unreadable
 * ones change nothing.
 */
function* readLiveManagers(
  next: ApiObject,
  previous: ApiObject | undefined,
  subresource: string,
  isLong: boolean,
): Steps<ManagedFields<Manager>> {
  const sent = next.metadata?.managedFields;
  const live = previous?.metadata?.managedFields;
  if (subresource === "" && sent !== undefined) {
    if (sent.length === 0 || (sent.length === 1 && isEmptyEntry(sent[0]!))) return new Map();
    const entries = reuseEntries(sent, live);
    if (isLong) yield;
    const managers = yield* readManagers(entries, isLong);
    if (managers !== undefined && managers.size > 0) return managers;
  }
  return (yield* readManagers(live, isLong)) ?? new Map();
}

function isEmptyEntry(entry: ManagedFieldsEntry): boolean {
  return Object.values(entry).every((value) => value === undefined || value === "");
}

/** Replaces sent entries that equal stored ones by these, whose parsed fields are cached. */
function reuseEntries(
  sent: readonly ManagedFieldsEntry[],
  live: readonly ManagedFieldsEntry[] = [],
): readonly ManagedFieldsEntry[] {
  return sent.map((entry, i) => {
    const stored = live[i];
    return stored !== undefined && deepEqual(entry, stored) ? stored : entry;
  });
}

interface UpdateManager {
  readonly fieldManager: string;
  readonly conversions: Conversions | undefined;
  readonly isLong: boolean;
}

/** The managers of `live` once `next` has replaced it. */
export function* managersAfterUpdate<T extends ApiObject>(
  request: WriteRequest<T>,
  managers: ManagedFields<Manager>,
  live: T,
  next: T,
  { fieldManager, conversions, isLong }: UpdateManager,
): Steps<ManagedFields<Manager>> {
  const { registry } = request;
  const manager = newManager(request, "Update", fieldManager);
  const context = { ...managerContext(request, managers, live, manager, conversions, isLong), name: CURRENT };
  if (isLong) yield;
  const isCreate = live.metadata === undefined;
  const value = isCreate ? toCreatedJsonValue(registry.kind.schema, next) : toFieldsValue(registry.kind, next);
  if (isLong) yield;
  const after = new Map(yield* updateManagers(context, value));
  const fields = after.get(CURRENT)?.fields ?? noFields;
  after.delete(CURRENT);
  if (!isEmptySet(fields)) {
    const identity = identityOf(manager);
    const before = after.get(identity);
    const merged = union(fields, before?.fields ?? noFields);
    if (isLong) yield;
    after.set(identity, { ...manager, fields: merged, time: registry.timestamp() });
  }
  return mergeOldestUpdaters(after);
}

/** A manager without fields yet. */
export function newManager<T extends ApiObject>(
  { registry, scope, options }: WriteRequest<T>,
  operation: Operation,
  name: string,
): Manager {
  const apiVersion = formatApiVersion(scope.group, registry.kind.version);
  return {
    manager: name === "" ? "unknown" : name,
    operation,
    apiVersion,
    version: versionOf(apiVersion),
    applied: operation === "Apply",
    subresource: options.subresource ?? "",
    fields: noFields,
    time: undefined,
  };
}

export function managerContext<T extends ApiObject>(
  { registry }: WriteRequest<T>,
  managers: ManagedFields<Manager>,
  live: T,
  manager: Manager,
  conversions: Conversions | undefined,
  isLong: boolean,
): ManagerContext<Manager> {
  return {
    versions: objectVersions(registry, manager.subresource, conversions),
    live: toFieldsValue(registry.kind, live),
    managers,
    name: identityOf(manager),
    manager,
    withFields,
    isLong,
  };
}

/** The JSON value whose fields are managed: the object without managedFields. */
export function toFieldsValue<T extends ApiObject>({ schema }: Pick<Kind<T>, "schema">, object: T): unknown {
  return toJsonValue(schema, object.metadata?.managedFields ? withManagedFields(object, undefined) : object);
}

/** Merges the oldest update managers of each version into one when there are too many. */
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
