import type { Steps } from "../../std/async/steps.ts";
import { areLong } from "../value/check-values.ts";
import { deepEqual } from "../value/equal.ts";
import { hasNoMembers, isPlainObject } from "../value/plain-object.ts";
import {
  childrenOf,
  composeSubtree,
  type FieldSet,
  isEmptySet,
  isOnlySelf,
  LEAF,
  type MutableFieldSet,
  noFields,
  SELF,
  union,
} from "./fieldpath/field-set.ts";
import { fieldElement } from "./fieldpath/path-element.ts";
import { type ItemsShape, type MembersShape, resolveShape, type Shape } from "./shape.ts";

/** The fields that differ between two values. No field is in more than one of the sets. */
export interface Comparison {
  readonly removed: FieldSet;
  /** Present in both values, and different. */
  readonly modified: FieldSet;
  readonly added: FieldSet;
}

/**
 * Compares two values of one shape; undefined means absent, null is a value. Throws an `IdentityError` when items of a
 * list have no identity.
 */
export function compare(shape: Shape, before: unknown, after: unknown): Comparison {
  const sets = noSets();
  compareInto(sets, shape, before, after);
  return comparisonOf(sets);
}

/** `compare` of long values: a step has some thousands of them. */
export function* compareInSteps(shape: Shape, before: unknown, after: unknown): Steps<Comparison> {
  const sets = noSets();
  yield* compareLongInto(sets, shape, before, after);
  return comparisonOf(sets);
}

/** Members or items that are compared in one step. */
const STEP_SIZE = 2000;

function* compareLongInto(sets: Sets, shape: Shape, before: unknown, after: unknown): Steps<void> {
  if (before === after) return;
  const was = resolveShape(shape, before ?? after);
  const is = resolveShape(shape, after ?? before);
  if (was !== is || !areLong(before, after)) compareInto(sets, shape, before, after);
  else if (is.kind === "members" && (isFilledMap(before) || isFilledMap(after))) {
    yield* compareLongMembers(sets, is, before, after);
  } else if (is.kind === "items" && is.elementOf !== undefined && (isFilledList(before) || isFilledList(after))) {
    yield* compareLongItems(sets, is, is.elementOf, before, after);
  } else compareInto(sets, shape, before, after);
}

function* compareLongMembers(sets: Sets, shape: MembersShape, before: unknown, after: unknown): Steps<void> {
  const old = isPlainObject(before) ? before : NOTHING;
  const now = isPlainObject(after) ? after : NOTHING;
  const builder = new ComparisonBuilder(before, after);
  let count = 0;
  for (const list of shape.rest === undefined ? [shape.ordered.map(({ name }) => name)] : namesOf(old, now)) {
    for (const name of list) {
      if (++count % STEP_SIZE === 0) yield;
      yield* compareLongMember(builder, shape, old, now, name);
    }
  }
  builder.addTo(sets);
}

/** All names of the first, then those that only the second has. */
function* namesOf(old: Members, now: Members): Generator<readonly string[]> {
  yield Object.keys(old).filter((name) => old[name] !== undefined);
  yield Object.keys(now).filter((name) => !Object.hasOwn(old, name) || old[name] === undefined);
}

function* compareLongMember(
  builder: ComparisonBuilder,
  { declared, rest }: MembersShape,
  old: Members,
  now: Members,
  name: string,
): Steps<void> {
  const was = ownMember(old, name, old[name]);
  const is = ownMember(now, name, now[name]);
  if (was === is) return;
  const shape = declared.get(name) ?? rest;
  if (shape === undefined) return;
  if (isContainer(was) || isContainer(is)) yield* builder.longMember(fieldElement(name), shape, was, is);
  else builder.member(fieldElement(name), shape, was, is);
}

function isContainer(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function* compareLongItems(
  sets: Sets,
  shape: ItemsShape,
  elementOf: (item: unknown) => string,
  before: unknown,
  after: unknown,
): Steps<void> {
  const builder = new ComparisonBuilder(before, after);
  const old = yield* groupInSteps(elementOf, before);
  const now = yield* groupInSteps(elementOf, after);
  let count = 0;
  for (const [element, were] of old) {
    if (++count % STEP_SIZE === 0) yield;
    builder.items(element, shape.items, were, now.get(element) ?? NO_ITEMS);
  }
  for (const [element, are] of now) {
    if (++count % STEP_SIZE === 0) yield;
    if (!old.has(element)) builder.items(element, shape.items, NO_ITEMS, are);
  }
  builder.addTo(sets);
}

const NO_ITEMS: readonly unknown[] = [];

function* groupInSteps(
  elementOf: (item: unknown) => string,
  value: unknown,
): Steps<ReadonlyMap<string, readonly unknown[]>> {
  const groups = new Map<string, unknown[]>();
  if (!Array.isArray(value)) return groups;
  for (let index = 0; index < value.length; index++) {
    if (index % STEP_SIZE === STEP_SIZE - 1) yield;
    addToGroup(groups, elementOf(value[index]), value[index]);
  }
  return groups;
}

function noSets(): Sets {
  return { removed: undefined, modified: undefined, added: undefined };
}

function comparisonOf({ removed = noFields, modified = noFields, added = noFields }: Sets): Comparison {
  return { removed: childrenOf(removed), modified: childrenOf(modified), added: childrenOf(added) };
}

/** The subtrees of one element in the three sets: undefined when the set has no field there. */
interface Sets {
  removed: FieldSet | undefined;
  modified: FieldSet | undefined;
  added: FieldSet | undefined;
}

function compareInto(sets: Sets, shape: Shape, before: unknown, after: unknown): void {
  if (before === after) return;
  // Null takes the shape of the other value.
  const was = resolveShape(shape, before ?? after);
  const is = resolveShape(shape, after ?? before);
  if (after === undefined) compareContainer(sets, was, before, after);
  else if (before === undefined || was === is) compareContainer(sets, is, before, after);
  else {
    compareContainer(sets, was, before, after);
    compareContainer(sets, is, before, after);
  }
}

function compareContainer(
  sets: Sets,
  shape: Exclude<Shape, { kind: "deduced" }>,
  before: unknown,
  after: unknown,
): void {
  switch (shape.kind) {
    case "members":
      if (isFilledMap(before) || isFilledMap(after)) compareMembers(sets, shape, before, after);
      else compareLeaf(sets, before, after);
      return;
    case "items":
      if (shape.elementOf !== undefined && (isFilledList(before) || isFilledList(after))) {
        compareItems(sets, shape, shape.elementOf, before, after);
      } else compareLeaf(sets, before, after);
      return;
    default:
      compareLeaf(sets, before, after);
  }
}

function compareLeaf(sets: Sets, before: unknown, after: unknown): void {
  if (before === undefined) sets.added = withSelf(sets.added);
  else if (after === undefined) sets.removed = withSelf(sets.removed);
  else if (!deepEqual(before, after)) sets.modified = withSelf(sets.modified);
}

function withSelf(below: FieldSet | undefined): FieldSet {
  return below === undefined ? LEAF : composeSubtree(true, childrenOf(below))!;
}

function isFilledMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return isPlainObject(value) && !hasNoMembers(value);
}

function isFilledList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > 0;
}

const NOTHING: Members = {};

function compareMembers(sets: Sets, shape: MembersShape, before: unknown, after: unknown): void {
  const old = isPlainObject(before) ? before : NOTHING;
  const now = isPlainObject(after) ? after : NOTHING;
  const builder = new ComparisonBuilder(before, after);
  if (shape.rest === undefined) compareDeclaredMembers(builder, shape, old, now);
  else compareAnyMembers(builder, shape, old, now);
  builder.addTo(sets);
}

type Members = Readonly<Record<string, unknown>>;

/** Visits the members in the canonical order of sets, so that the result needs no sorting. */
function compareDeclaredMembers(
  builder: ComparisonBuilder,
  { ordered }: MembersShape,
  old: Members,
  now: Members,
): void {
  for (const { name, element, shape } of ordered) {
    const was = old[name];
    const is = now[name];
    if (was !== is) builder.member(element, shape, ownMember(old, name, was), ownMember(now, name, is));
  }
}

/** Undefined for properties inherited from `Object.prototype`. */
function ownMember(members: Members, name: string, value: unknown): unknown {
  return value === undefined || Object.hasOwn(members, name) ? value : undefined;
}

function compareAnyMembers(
  builder: ComparisonBuilder,
  { declared, rest }: MembersShape,
  old: Members,
  now: Members,
): void {
  for (const name in old) {
    if (old[name] === undefined || old[name] === now[name]) continue;
    const shape = declared.get(name) ?? rest;
    if (shape === undefined) continue;
    builder.member(fieldElement(name), shape, old[name], Object.hasOwn(now, name) ? now[name] : undefined);
  }
  for (const name in now) {
    if (now[name] === undefined || (Object.hasOwn(old, name) && old[name] !== undefined)) continue;
    const shape = declared.get(name) ?? rest;
    if (shape !== undefined) builder.member(fieldElement(name), shape, undefined, now[name]);
  }
}

function compareItems(
  sets: Sets,
  shape: ItemsShape,
  elementOf: (item: unknown) => string,
  before: unknown,
  after: unknown,
): void {
  const builder = new ComparisonBuilder(before, after);
  if (!isFilledList(before) && builder.addedItems(elementOf, shape.items, after as readonly unknown[])) {
    builder.addTo(sets);
    return;
  }
  const old = groupByElement(elementOf, before);
  const now = groupByElement(elementOf, after);
  for (const [element, were] of old) builder.items(element, shape.items, were, now.get(element) ?? []);
  for (const [element, are] of now) if (!old.has(element)) builder.items(element, shape.items, [], are);
  builder.addTo(sets);
}

function groupByElement(elementOf: (item: unknown) => string, value: unknown): ReadonlyMap<string, readonly unknown[]> {
  const groups = new Map<string, unknown[]>();
  if (!Array.isArray(value)) return groups;
  for (const item of value) addToGroup(groups, elementOf(item), item);
  return groups;
}

function addToGroup(groups: Map<string, unknown[]>, element: string, item: unknown): void {
  const same = groups.get(element);
  if (same === undefined) groups.set(element, [item]);
  else same.push(item);
}

/** Collects the sets of a container from the comparison of its elements. */
class ComparisonBuilder {
  #removed: MutableFieldSet | undefined;
  #modified: MutableFieldSet | undefined;
  #added: MutableFieldSet | undefined;

  /** A container that is added or removed is a field as well. */
  constructor(before: unknown, after: unknown) {
    if (before === undefined) this.#added = { [SELF]: LEAF };
    else if (after === undefined) this.#removed = { [SELF]: LEAF };
  }

  member(element: string, shape: Shape, before: unknown, after: unknown): void {
    const sets = noSets();
    compareInto(sets, shape, before, after);
    this.#putAny(element, sets);
  }

  *longMember(element: string, shape: Shape, before: unknown, after: unknown): Steps<void> {
    const sets = noSets();
    yield* compareLongInto(sets, shape, before, after);
    this.#putAny(element, sets);
  }

  #putAny(element: string, sets: Sets): void {
    if (sets.removed !== undefined || sets.modified !== undefined || sets.added !== undefined) {
      this.#put(element, sets);
    }
  }

  /** A list that is new needs no groups. False, and nothing is added, when two items have the same identity. */
  addedItems(elementOf: (item: unknown) => string, shape: Shape, items: readonly unknown[]): boolean {
    const added: MutableFieldSet = { ...this.#added };
    for (const item of items) {
      const element = elementOf(item);
      if (added[element] !== undefined) return false;
      const sets = noSets();
      compareInto(sets, shape, undefined, item);
      if (sets.added !== undefined) added[element] = sets.added;
    }
    this.#added = added;
    return true;
  }

  /** Items with the same identity are compared as one value: the duplicates together are one field. */
  items(element: string, shape: Shape, before: readonly unknown[], after: readonly unknown[]): void {
    const sets = noSets();
    if (before.length <= 1 && after.length <= 1) compareInto(sets, shape, before[0], after[0]);
    else if (before.length > 1 && after.length > 1) {
      if (!deepEqual(before, after)) sets.modified = LEAF;
    } else if (before.length > 1) {
      if (after.length > 0) compareInto(sets, shape, undefined, after[0]);
      sets.removed = withSelf(sets.removed);
    } else {
      if (before.length > 0) compareInto(sets, shape, before[0], undefined);
      sets.added = withSelf(sets.added);
    }
    this.#put(element, sets);
  }

  #put(element: string, { removed, modified, added }: Sets): void {
    if (removed !== undefined) this.#removed = putElement(this.#removed, element, removed);
    if (modified !== undefined) this.#modified = putElement(this.#modified, element, modified);
    if (added !== undefined) this.#added = putElement(this.#added, element, added);
  }

  addTo(sets: Sets): void {
    sets.removed = joinSets(sets.removed, this.#removed);
    sets.modified = joinSets(sets.modified, this.#modified);
    sets.added = joinSets(sets.added, this.#added);
  }
}

function putElement(set: MutableFieldSet = {}, element: string, below: FieldSet): MutableFieldSet {
  set[element] = below;
  return set;
}

function joinSets(below: FieldSet | undefined, added: FieldSet | undefined): FieldSet | undefined {
  if (added === undefined) return below;
  if (below === undefined) return isOnlySelf(added) || isEmptySet(added) ? LEAF : added;
  return isEmptySet(below) ? { [SELF]: LEAF, ...added } : union(below, added);
}
