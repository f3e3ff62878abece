import type { Steps } from "../../std/async/steps.ts";
import { areLong } from "../value/check-values.ts";
import { deepEqual } from "../value/equal.ts";
import { getMember, isPlainObject, setMember } from "../value/plain-object.ts";
import { type ItemsShape, type MembersShape, resolveShape, type Shape } from "./shape.ts";

/**
 * Merges the applied value into the live one. Removes nothing; where the orders of two lists disagree, the applied
 * order wins. The result shares unchanged parts with the live value. Throws an `IdentityError`.
 */
export function merge(shape: Shape, live: unknown, applied: unknown): unknown {
  if (applied === undefined || applied === live) return live;
  if (live === undefined) return applied;
  // Null takes the shape of the live value.
  const resolved = resolveShape(shape, applied ?? live);
  switch (resolved.kind) {
    case "members":
      return mergeMembers(resolved, live, applied);
    case "items":
      return resolved.elementOf === undefined ? applied : mergeItems(resolved, resolved.elementOf, live, applied);
    default:
      return deepEqual(live, applied) ? live : applied;
  }
}

/** `merge` of long values: a step has some thousands of their members. */
export function* mergeInSteps(shape: Shape, live: unknown, applied: unknown): Steps<unknown> {
  if (applied === undefined || applied === live || live === undefined || !areLong(live, applied)) {
    return merge(shape, live, applied);
  }
  const resolved = resolveShape(shape, applied);
  const isMerged = resolved.kind === "members" && isPlainObject(live) && isPlainObject(applied);
  if (!isMerged || Object.keys(applied).length === 0) return merge(shape, live, applied);
  const changed: [string, unknown][] = [];
  let count = 0;
  for (const name of Object.keys(applied)) {
    if (++count % STEP_SIZE === 0) yield;
    const was = getMember(live, name);
    const member = resolved.declared.get(name) ?? resolved.rest;
    const merged = member === undefined ? applied[name] : yield* mergeInSteps(member, was, applied[name]);
    if (merged !== was) changed.push([name, merged]);
  }
  if (changed.length === 0) return live;
  yield;
  const result: Record<string, unknown> = {};
  for (const name of Object.keys(live)) {
    if (++count % STEP_SIZE === 0) yield;
    setMember(result, name, live[name]);
  }
  for (const [name, merged] of changed) {
    if (++count % STEP_SIZE === 0) yield;
    setMember(result, name, merged);
  }
  return result;
}

/** Members that are merged in one step. */
const STEP_SIZE = 2000;

function mergeMembers({ declared, rest }: MembersShape, live: unknown, applied: unknown): unknown {
  const old = isPlainObject(live) ? live : {};
  if (!isPlainObject(applied)) return Object.keys(old).length === 0 ? applied : live;
  if (Object.keys(applied).length === 0) return Object.keys(old).length === 0 ? applied : live;
  let result: Record<string, unknown> | undefined;
  for (const name of Object.keys(applied)) {
    const was = getMember(old, name);
    const shape = declared.get(name) ?? rest;
    const merged = shape === undefined ? applied[name] : merge(shape, was, applied[name]);
    if (merged === was) continue;
    result ??= { ...old };
    setMember(result, name, merged);
  }
  return result ?? live;
}

type Elements = readonly string[];

function mergeItems(shape: ItemsShape, elementOf: (item: unknown) => string, live: unknown, applied: unknown): unknown {
  const old = Array.isArray(live) ? live : [];
  if (!Array.isArray(applied)) return old.length === 0 ? applied : live;
  if (applied.length === 0) return old.length === 0 ? applied : live;
  const oldElements = old.map(elementOf);
  const newElements = applied.map(elementOf);
  const newPlaces = new Map(newElements.map((element, index) => [element, index]));
  const oldPlaces = uniqueIndexes(oldElements);
  const merged = (element: string): unknown => {
    const index = oldPlaces.get(element);
    // Live items with duplicate identities are not merged with.
    const was = index === undefined || index < 0 ? undefined : old[index];
    return merge(shape.items, was, applied[newPlaces.get(element)!]);
  };
  const result = mergeOrder(oldElements, newElements, oldPlaces, newPlaces).map((step) =>
    typeof step === "number" ? old[step] : merged(step),
  );
  const unchanged = result.length === old.length && result.every((item, index) => item === old[index]);
  return unchanged ? live : result;
}

/** The index of each element; -1 for duplicates. */
function uniqueIndexes(elements: Elements): ReadonlyMap<string, number> {
  const indexes = new Map<string, number>();
  for (const [index, element] of elements.entries()) indexes.set(element, indexes.has(element) ? -1 : index);
  return indexes;
}

/**
 * The order of a merged list: a number is the index of a live item that is not applied, a string the element of an
 * applied one. Live items stay after the live items they followed; applied items keep the applied order.
 */
function mergeOrder(
  old: Elements,
  applied: Elements,
  oldPlaces: ReadonlyMap<string, number>,
  newPlaces: ReadonlyMap<string, number>,
): readonly (number | string)[] {
  const shared = applied.filter((element) => oldPlaces.has(element));
  const steps: (number | string)[] = [];
  const done = new Set<string>();
  let nextShared = 0;
  let left = 0;
  let right = 0;
  while (left < old.length || right < applied.length) {
    if (left < old.length && right < applied.length) {
      const element = old[left]!;
      if (element === applied[right]) {
        steps.push(element);
        done.add(element);
        left++;
        right++;
        nextShared++;
        continue;
      }
      if (newPlaces.has(element) && nextShared < shared.length && shared[nextShared] !== element) {
        // A shared item that the applied order has later.
        left++;
        continue;
      }
    }
    if (left < old.length) {
      const element = old[left]!;
      if (!newPlaces.has(element)) {
        steps.push(left++);
        continue;
      }
      if (done.has(element)) left++;
    }
    if (right < applied.length) {
      const element = applied[right++]!;
      steps.push(element);
      done.add(element);
      if (nextShared < shared.length && shared[nextShared] === element) nextShared++;
    }
  }
  return steps;
}
