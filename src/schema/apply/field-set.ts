/**
 * Sets of fields, in the very form in which `managedFields` carries them (FieldsV1): a member of the object is a path
 * element (`path-element.ts`), its value the set below it. An element whose value is empty, or holds `.`, belongs to
 * the set itself; the others only lead to some that do.
 *
 *     {"f:data": {".": {}, "f:a": {}}, "f:spec": {"f:x": {}}}      data, data.a and spec.x
 *
 * Sets are never changed once made, so they share what they have in common.
 */
import { compareElements, sortElements } from "./path-element.ts";

export interface FieldSet {
  readonly [element: string]: FieldSet;
}

/** Says of an element that has others below it that it belongs to the set itself. */
export const SELF = ".";
/** What stands below an element that has nothing below it. */
export const LEAF: FieldSet = Object.freeze({});
/** A set of nothing. */
export const noFields: FieldSet = Object.freeze({});

export type MutableFieldSet = Record<string, FieldSet>;

export function isEmptySet(set: FieldSet): boolean {
  for (const _ in set) return false;
  return true;
}

/** Whether the element that `below` stands under belongs to the set itself. */
export function isMember(below: FieldSet): boolean {
  return below[SELF] !== undefined || isEmptySet(below);
}

/** Whether the set has a field under the elements, the last of which it is. */
export function hasField(set: FieldSet, ...path: readonly string[]): boolean {
  let below: FieldSet | undefined = set;
  for (const element of path) below = below?.[element];
  return path.length > 0 && below !== undefined && isMember(below);
}

/** The set below an element, without a word about the element itself. */
export function childrenOf(below: FieldSet): FieldSet {
  if (below[SELF] === undefined) return below;
  const { [SELF]: _, ...children } = below;
  return children;
}

/** What stands under an element: undefined when that is nothing at all. */
export function composeSubtree(member: boolean, children: FieldSet): FieldSet | undefined {
  if (isEmptySet(children)) return member ? LEAF : undefined;
  return member ? { [SELF]: LEAF, ...children } : children;
}

/** Fields of either. */
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

/** Fields of both. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a;
  const result: MutableFieldSet = {};
  for (const element in a) {
    const theirs = b[element];
    if (element === SELF || theirs === undefined) continue;
    const mine = a[element]!;
    const member = isMember(mine) && isMember(theirs);
    const below = composeSubtree(member, isEmptySet(mine) || isEmptySet(theirs) ? LEAF : intersection(mine, theirs));
    if (below !== undefined) result[element] = below;
  }
  return result;
}

/** Fields of `a` that `b` has not. Taking a field away leaves what lies below it. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return noFields;
  if (isEmptySet(b)) return a;
  const result: MutableFieldSet = {};
  for (const element in a) {
    if (element === SELF) continue;
    const mine = a[element]!;
    const theirs = b[element];
    const below =
      theirs === undefined
        ? mine
        : composeSubtree(
            isMember(mine) && !isMember(theirs),
            isEmptySet(mine) ? LEAF : childrenOf(difference(mine, theirs)),
          );
    if (below !== undefined) result[element] = below;
  }
  return result;
}

/** Fields of `a` that neither are in `b` nor lie below one that is. */
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

/** A set of the fields that the paths name; what leads to them is not in it. */
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

/** Every field of the set: itself before those below it. */
export function* pathsOf(set: FieldSet, prefix: readonly string[] = []): Generator<readonly string[]> {
  const elements = sortElements(Object.keys(set).filter((element) => element !== SELF));
  for (const element of elements) if (isMember(set[element]!)) yield [...prefix, element];
  for (const element of elements) yield* pathsOf(set[element]!, [...prefix, element]);
}

/** The set with its elements in the order in which Kubernetes writes them; itself when they are. */
export function canonicalize(set: FieldSet): FieldSet {
  const elements = Object.keys(set);
  let result: MutableFieldSet | undefined;
  if (elements.length > 1 && !isSorted(elements)) {
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

/** The elements in front of one. */
function elementsBefore(set: FieldSet, end: string): MutableFieldSet {
  const result: MutableFieldSet = {};
  for (const element in set) {
    if (element === end) break;
    result[element] = set[element]!;
  }
  return result;
}

/** The same for a set of which all that lies below is in order. */
export function sortMembers(set: FieldSet): FieldSet {
  const elements = Object.keys(set);
  if (elements.length < 2 || isSorted(elements)) return set;
  const result: MutableFieldSet = {};
  for (const element of sortElements(elements)) result[element] = set[element]!;
  return result;
}

function isSorted(elements: readonly string[]): boolean {
  for (let place = 1; place < elements.length; place++) {
    if (compareElements(elements[place - 1]!, elements[place]!) > 0) return false;
  }
  return true;
}
