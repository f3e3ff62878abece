/**
 * Sets of fields in the format of `managedFields` (FieldsV1): each property name is a path element (`path-element.ts`),
 * its value the subtree below it. An element whose subtree is empty or contains `.` is a member of the set; the others
 * are only on the path to members.
 *
 *     {"f:data": {".": {}, "f:a": {}}, "f:spec": {"f:x": {}}}      data, data.a and spec.x
 *
 * Sets are immutable, so they share common subtrees.
 */
import { emptyFields } from "../../value/fields-v1-cache.ts";
import { countMembers, hasNoMembers } from "../../value/plain-object.ts";
import { areSorted, sortElements } from "./path-element.ts";

export interface FieldSet {
  readonly [element: string]: FieldSet;
}

/** Marks an element that has others below it as a member of the set. */
export const SELF = ".";
/** The subtree of an element that has no others below it. */
export const LEAF: FieldSet = emptyFields;
/** The empty set. */
export const noFields: FieldSet = Object.freeze({});

export type MutableFieldSet = Record<string, FieldSet>;

export function isEmptySet(set: FieldSet): boolean {
  return set === LEAF || (set[SELF] === undefined && hasNoMembers(set));
}

/** Whether the set has the marker of the element itself, and nothing else. */
export function isOnlySelf(set: FieldSet): boolean {
  return set[SELF] !== undefined && countMembers(set) === 1;
}

/** Whether the element whose subtree is `below` is a member of the set. */
export function isMember(below: FieldSet): boolean {
  return below[SELF] !== undefined || isEmptySet(below);
}

/** Whether the field at this path is a member of the set. */
export function hasField(set: FieldSet, ...path: readonly string[]): boolean {
  let below: FieldSet | undefined = set;
  for (const element of path) below = below?.[element];
  return path.length > 0 && below !== undefined && isMember(below);
}

/** The subtree without the marker of the element itself. */
export function childrenOf(below: FieldSet): FieldSet {
  if (below[SELF] === undefined) return below;
  const { [SELF]: _, ...children } = below;
  return children;
}

/** Builds the subtree of an element; undefined when neither the element nor anything below it is a member. */
export function composeSubtree(member: boolean, children: FieldSet): FieldSet | undefined {
  if (isEmptySet(children)) return member ? LEAF : undefined;
  return member ? { [SELF]: LEAF, ...children } : children;
}

/** Fields in `a` or `b`. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || isEmptySet(b)) return a;
  if (isEmptySet(a)) return b;
  const result: MutableFieldSet = { ...a };
  for (const element in b) {
    const mine = a[element];
    const theirs = b[element]!;
    result[element] = mine === undefined || mine === theirs ? theirs : unionBelow(mine, theirs);
  }
  return result;
}

function unionBelow(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(a)) return composeSubtree(true, childrenOf(b))!;
  if (isEmptySet(b)) return composeSubtree(true, childrenOf(a))!;
  return union(a, b);
}

/** Fields in both `a` and `b`. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a;
  return intersectElements(a, b, false) ?? noFields;
}

function intersectBelow(a: FieldSet, b: FieldSet): FieldSet | undefined {
  if (a === b) return a;
  const member = isMember(a) && isMember(b);
  return isEmptySet(a) || isEmptySet(b) ? leafOf(member) : intersectElements(a, b, member);
}

function intersectElements(a: FieldSet, b: FieldSet, member: boolean): FieldSet | undefined {
  const result: MutableFieldSet = member ? { [SELF]: LEAF } : {};
  let isFilled = false;
  for (const element in a) {
    const theirs = b[element];
    if (element === SELF || theirs === undefined) continue;
    const below = intersectBelow(a[element]!, theirs);
    if (below === undefined) continue;
    result[element] = below;
    isFilled = true;
  }
  return isFilled ? result : leafOf(member);
}

function leafOf(member: boolean): FieldSet | undefined {
  return member ? LEAF : undefined;
}

/** Fields in `a` that are not in `b`. Removing a field keeps the fields below it. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return noFields;
  return isEmptySet(b) ? a : (subtractElements(a, b, false) ?? noFields);
}

function subtractBelow(a: FieldSet, b: FieldSet): FieldSet | undefined {
  if (a === b) return undefined;
  const member = isMember(a) && !isMember(b);
  if (isEmptySet(a)) return leafOf(member);
  return isEmptySet(b) ? composeSubtree(member, childrenOf(a)) : subtractElements(a, b, member);
}

function subtractElements(a: FieldSet, b: FieldSet, member: boolean): FieldSet | undefined {
  const result: MutableFieldSet = member ? { [SELF]: LEAF } : {};
  let isFilled = false;
  for (const element in a) {
    if (element === SELF) continue;
    const mine = a[element]!;
    const theirs = b[element];
    const below = theirs === undefined ? mine : subtractBelow(mine, theirs);
    if (below === undefined) continue;
    result[element] = below;
    isFilled = true;
  }
  return isFilled ? result : leafOf(member);
}

/** Fields in `a` that are not in `b` and not below a field in `b`. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(b)) return a;
  const result: MutableFieldSet = {};
  for (const element in a) {
    if (element === SELF) continue;
    const mine = a[element]!;
    const theirs = b[element];
    if (theirs !== undefined && isMember(theirs)) continue;
    const below =
      theirs === undefined
        ? mine
        : composeSubtree(isMember(mine), isEmptySet(mine) ? LEAF : recursiveDifference(mine, theirs));
    if (below !== undefined) result[element] = below;
  }
  return result;
}

/** Fields that have no other below them. */
export function leavesOf(set: FieldSet): FieldSet {
  const result: MutableFieldSet = {};
  for (const element in set) {
    if (element === SELF) continue;
    const below = set[element]!;
    const children = childrenOf(below);
    result[element] = isEmptySet(children) ? LEAF : leavesOf(children);
  }
  return result;
}

export function sizeOf(set: FieldSet): number {
  let size = 0;
  for (const element in set) {
    if (element === SELF) continue;
    const below = set[element]!;
    size += (isMember(below) ? 1 : 0) + sizeOf(below);
  }
  return size;
}

export function setsEqual(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true;
  for (const element in a) {
    const theirs = b[element];
    if (theirs === undefined || !setsEqual(a[element]!, theirs)) return false;
  }
  for (const element in b) if (a[element] === undefined) return false;
  return true;
}

/** A set of the fields at these paths, without the fields above them. */
export function setOfPaths(...paths: readonly (readonly string[])[]): FieldSet {
  let result: FieldSet = noFields;
  for (const path of paths) {
    result = union(
      result,
      path.reduceRight<FieldSet>((below, element) => ({ [element]: below }), LEAF),
    );
  }
  return result;
}

/** The path of every field of the set, parents before children. */
export function* pathsOf(set: FieldSet, prefix: readonly string[] = []): Generator<readonly string[]> {
  const elements = sortElements(Object.keys(set).filter((element) => element !== SELF));
  for (const element of elements) if (isMember(set[element]!)) yield [...prefix, element];
  for (const element of elements) yield* pathsOf(set[element]!, [...prefix, element]);
}

/** The set with its elements in the order in which Kubernetes writes them; the set itself when already sorted. */
export function canonicalize(set: FieldSet): FieldSet {
  const elements = Object.keys(set);
  let result: MutableFieldSet | undefined;
  if (!areSorted(elements)) {
    sortElements(elements);
    result = {};
  }
  for (const element of elements) {
    const below = set[element]!;
    const next = isEmptySet(below) ? below : canonicalize(below);
    if (result === undefined && next !== below) result = elementsBefore(set, element);
    if (result !== undefined) result[element] = next;
  }
  return result ?? set;
}

/** The elements before `end`. */
export function elementsBefore(set: FieldSet, end: string): MutableFieldSet {
  const result: MutableFieldSet = {};
  for (const element in set) {
    if (element === end) break;
    result[element] = set[element]!;
  }
  return result;
}

/** Sorts the elements of a set whose subtrees are sorted already. */
export function sortMembers(set: FieldSet): FieldSet {
  const elements = Object.keys(set);
  if (areSorted(elements)) return set;
  const result: MutableFieldSet = {};
  for (const element of sortElements(elements)) result[element] = set[element]!;
  return result;
}
