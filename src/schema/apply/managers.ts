/**
 * Computes the managed fields of an object after an update or an apply: an update takes over the fields it changes, an
 * apply the fields in its configuration. An apply that would change a field of another manager is a conflict unless it
 * is forced.
 */
import type { Steps } from "../../std/async/steps.ts";
import { deepEqual } from "../value/equal.ts";
import { internFieldsV1 } from "../value/fields-v1-cache.ts";
import { type Comparison, compare, compareInSteps } from "./compare.ts";
import {
  difference,
  type FieldSet,
  intersection,
  isEmptySet,
  noFields,
  pathsOf,
  union,
} from "./fieldpath/field-set.ts";
import { merge, mergeInSteps } from "./merge.ts";
import { ensureNamedFieldsAreMembers } from "./named-members.ts";
import { reconcileFieldSet } from "./reconcile.ts";
import { removeItems } from "./remove.ts";
import type { Shape } from "./shape.ts";
import { toFieldSet, toFieldSetInSteps } from "./to-field-set.ts";

/** The fields of one manager, named as in one version of the object. */
export interface VersionedSet {
  readonly version: string;
  readonly applied: boolean;
  readonly fields: FieldSet;
}

export type ManagedFields<M extends VersionedSet = VersionedSet> = ReadonlyMap<string, M>;

/** The served versions of an object, and conversion between them. */
export interface Versions {
  /** Undefined for a version that is no longer served; its managers are dropped. */
  shapeOf(version: string): Shape | undefined;
  convert(value: unknown, from: string, to: string): unknown;
  /** Removes the fields that a write cannot change, and so cannot manage. */
  filter(version: string, fields: FieldSet): FieldSet;
  /** Removes fields that every write contains and no manager owns, such as `metadata.name` and `apiVersion`. */
  stripMeta(fields: FieldSet): FieldSet;
}

export interface Conflict {
  readonly manager: string;
  readonly path: readonly string[];
}

export class ConflictError extends Error {
  override readonly name = "ConflictError";
  readonly conflicts: readonly Conflict[];

  constructor(conflicts: readonly Conflict[]) {
    super(`${conflicts.length} fields have other managers`);
    this.conflicts = conflicts;
  }
}

/** Copies a manager's entry with other fields. */
type WithFields<M> = (managed: M, fields: FieldSet) => M;

export interface ManagerContext<M extends VersionedSet> {
  readonly versions: Versions;
  /** Both in the version of `manager.version`. */
  readonly live: unknown;
  readonly managers: ManagedFields<M>;
  /** The key of the writing manager in `managers`. */
  readonly name: string;
  /** The writing manager's entry, without fields. */
  readonly manager: M;
  readonly withFields: WithFields<M>;
  /** Whether steps yield: those of a small object take less time than that. */
  readonly isLong: boolean;
}

/** Returns the managed fields after an update from `live` to `next`. */
export function* updateManagers<M extends VersionedSet>(
  change: ManagerContext<M>,
  next: unknown,
): Steps<ManagedFields<M>> {
  const { versions, live, manager, name, withFields, isLong } = change;
  const { version } = manager;
  const reconciled = reconcileManagers(change);
  if (isLong) yield;
  const { managers, comparison } = yield* resolveConflicts(change, reconciled, live, next, true);
  const own = managers.get(name)?.fields ?? noFields;
  const { removed, modified, added } = comparison;
  const kept = union(difference(own, removed), modified);
  if (isLong) yield;
  const changed = union(kept, added);
  if (isLong) yield;
  const fields = versions.stripMeta(versions.filter(version, changed));
  if (isLong) yield;
  const result = new Map(managers);
  if (isEmptySet(fields)) result.delete(name);
  else result.set(name, withFields(manager, fields));
  return result;
}

export interface ApplyResult<M extends VersionedSet> {
  /** Undefined when the object stays as it is. */
  readonly value: unknown;
  readonly managers: ManagedFields<M>;
}

/**
 * Applies `configuration` and returns the object with its managed fields. Removes the fields that the manager applied
 * the last time, does not apply now and no other manager owns. Throws a `ConflictError` unless `force` is true.
 */
export function* apply<M extends VersionedSet>(
  change: ManagerContext<M>,
  configuration: unknown,
  force: boolean,
): Steps<ApplyResult<M>> {
  const { versions, live, manager, name, withFields, isLong } = change;
  const { version } = manager;
  const shape = requireShape(versions, version);
  const managers = new Map(reconcileManagers(change));
  if (isLong) yield;
  const last = managers.get(name);
  const applied = isLong ? yield* toFieldSetInSteps(shape, configuration) : toFieldSet(shape, configuration);
  const named = versions.filter(version, applied);
  if (isLong) yield;
  const fields = internFieldsV1(versions.stripMeta(named));
  if (isLong) yield;
  managers.set(name, withFields(manager, named));
  const merged = isLong ? yield* mergeInSteps(shape, live, configuration) : merge(shape, live, configuration);
  if (isLong) yield;
  // Nothing is removed when the same fields are applied again.
  const again = last?.version === version && last.fields === fields;
  const value = again ? merged : yield* prune(versions, merged, managers, name, last);
  const after = new Map((yield* resolveConflicts(change, managers, live, value, force)).managers);
  if (isEmptySet(fields)) after.delete(name);
  else after.set(name, withFields(manager, fields));
  return { value: deepEqual(live, value) ? undefined : value, managers: after };
}

function requireShape(versions: Versions, version: string): Shape {
  const shape = versions.shapeOf(version);
  if (shape === undefined) throw new Error(`Cannot apply in version ${version}: it is not served`);
  return shape;
}

function reconcileManagers<M extends VersionedSet>({
  versions,
  managers,
  withFields,
}: ManagerContext<M>): ManagedFields<M> {
  const result = new Map<string, M>();
  for (const [name, managed] of managers) {
    const shape = versions.shapeOf(managed.version);
    if (shape === undefined) continue;
    const fields = reconcileFieldSet(shape, managed.fields);
    result.set(name, fields === managed.fields ? managed : withFields(managed, fields));
  }
  return result;
}

/** Removes from the other managers the fields that change from `live` to `next`. Throws a `ConflictError`. */
function* resolveConflicts<M extends VersionedSet>(
  { versions, name: own, manager, withFields, isLong }: ManagerContext<M>,
  managers: ManagedFields<M>,
  live: unknown,
  next: unknown,
  force: boolean,
): Steps<{ readonly managers: ManagedFields<M>; readonly comparison: Comparison }> {
  const { version } = manager;
  const comparisons = new Map<string, Comparison>();
  const comparisonIn = function* (wanted: string): Steps<Comparison> {
    let comparison = comparisons.get(wanted);
    if (comparison === undefined) {
      comparison = yield* compareInVersion(versions, wanted, version, live, next, isLong);
      comparisons.set(wanted, comparison);
    }
    return comparison;
  };
  const comparison = yield* comparisonIn(version);
  const result = new Map<string, M>();
  const conflicts: Conflict[] = [];
  for (const [name, managed] of managers) {
    if (name === own) {
      if (!isEmptySet(managed.fields)) result.set(name, managed);
      continue;
    }
    const { removed, modified, added } = yield* comparisonIn(managed.version);
    const lost = union(intersection(managed.fields, modified), intersection(managed.fields, added));
    if (isLong) yield;
    if (!force) for (const path of pathsOf(lost)) conflicts.push({ manager: name, path });
    const fields = difference(difference(managed.fields, lost), removed);
    if (isLong) yield;
    if (isEmptySet(fields)) continue;
    result.set(name, fields === managed.fields ? managed : withFields(managed, fields));
  }
  if (conflicts.length > 0) throw new ConflictError(conflicts);
  return { managers: result, comparison };
}

function* compareInVersion(
  versions: Versions,
  version: string,
  from: string,
  live: unknown,
  next: unknown,
  isLong: boolean,
): Steps<Comparison> {
  const shape = requireShape(versions, version);
  const old = versions.convert(live, from, version);
  if (isLong) yield;
  const converted = versions.convert(next, from, version);
  if (isLong) yield;
  const comparison = isLong ? yield* compareInSteps(shape, old, converted) : compare(shape, old, converted);
  const { removed, modified, added } = comparison;
  if (isLong) yield;
  return {
    removed: versions.filter(version, removed),
    modified: versions.filter(version, modified),
    added: versions.filter(version, added),
  };
}

/** Removes the fields that `name` applied the last time and no manager owns now. */
function* prune<M extends VersionedSet>(
  versions: Versions,
  merged: unknown,
  managers: ManagedFields<M>,
  name: string,
  last: M | undefined,
): Steps<unknown> {
  if (last === undefined || isEmptySet(last.fields)) return merged;
  const { fields, version } = managers.get(name)!;
  // All fields are applied again.
  if (last.version === version && isEmptySet(difference(last.fields, fields))) return merged;
  const shape = versions.shapeOf(last.version);
  if (shape === undefined) return merged;
  const converted = versions.convert(merged, version, last.version);
  yield;
  const bare = removeItems(shape, converted, ensureNamedFieldsAreMembers(shape, last.fields));
  yield;
  const owned = yield* addBackOwnedItems(versions, converted, bare, last.version, managers);
  const complete = yield* addBackDanglingItems(shape, converted, owned, last.fields);
  return versions.convert(complete, last.version, version);
}

/** Adds back removed fields that have a manager, in the version of the removal first. */
function* addBackOwnedItems<M extends VersionedSet>(
  versions: Versions,
  merged: unknown,
  bare: unknown,
  version: string,
  managers: ManagedFields<M>,
): Steps<unknown> {
  const byVersion = new Map<string, FieldSet>([[version, noFields]]);
  for (const managed of managers.values()) {
    byVersion.set(managed.version, union(byVersion.get(managed.version) ?? noFields, managed.fields));
    yield;
  }
  let result = bare;
  for (const [other, fields] of byVersion) {
    const shape = versions.shapeOf(other);
    if (shape === undefined) continue;
    const whole = versions.convert(merged, version, other);
    const left = versions.convert(result, version, other);
    yield;
    const present = yield* namedFields(shape, left);
    yield;
    const wanted = union(present, ensureNamedFieldsAreMembers(shape, fields));
    yield;
    const unwanted = difference(yield* namedFields(shape, whole), wanted);
    yield;
    result = versions.convert(removeItems(shape, whole, unwanted), other, version);
    yield;
  }
  return result;
}

function* namedFields(shape: Shape, value: unknown): Steps<FieldSet> {
  const fields = yield* toFieldSetInSteps(shape, value);
  yield;
  return ensureNamedFieldsAreMembers(shape, fields);
}

/** Adds back removed fields that the manager did not apply the last time: other writes have set them. */
function* addBackDanglingItems(shape: Shape, merged: unknown, left: unknown, last: FieldSet): Steps<unknown> {
  const before = yield* namedFields(shape, merged);
  yield;
  const removed = difference(before, yield* namedFields(shape, left));
  yield;
  return removeItems(shape, merged, intersection(removed, ensureNamedFieldsAreMembers(shape, last)));
}
