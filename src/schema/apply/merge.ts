import { deepEqual } from "../value/equal.ts";
import { isPlainObject, setMember } from "../value/plain-object.ts";
import { type ItemsShape, type MembersShape, resolveShape, type Shape } from "./shape.ts";

/**
 * The live value with what is applied merged into it: nothing is removed, lists keep their order where both agree and
 * follow the applied one where not. What does not change is the live value itself. Throws an `IdentityError`.
 */
export function merge(shape: Shape, live: unknown, applied: unknown): unknown {
  if (applied === undefined || applied === live) return live;
  if (live === undefined) return applied;
  // Null takes the form of the live value.
  const form = resolveShape(shape, applied ?? live);
  switch (form.form) {
    case "members":
      return mergeMembers(form, live, applied);
    case "items":
      return form.elementOf === undefined ? applied : mergeItems(form, form.elementOf, live, applied);
    default:
      return deepEqual(live, applied) ? live : applied;
  }
}

function mergeMembers({ declared, rest }: MembersShape, live: unknown, applied: unknown): unknown {
  const old = isPlainObject(live) ? live : {};
  if (!isPlainObject(applied)) return Object.keys(old).length === 0 ? applied : live;
  if (Object.keys(applied).length === 0) return Object.keys(old).length === 0 ? applied : live;
  let result: Record<string, unknown> | undefined;
  for (const name of Object.keys(applied)) {
    const was = Object.hasOwn(old, name) ? old[name] : undefined;
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
  const newPlaces = new Map(newElements.map((element, place) => [element, place]));
  const oldPlaces = uniqueIndexes(oldElements);
  const merged = (element: string): unknown => {
    const place = oldPlaces.get(element);
    // Of several live items of one identity none is merged with.
    const was = place === undefined || place < 0 ? undefined : old[place];
    return merge(shape.items, was, applied[newPlaces.get(element)!]);
  };
  const result = mergeOrder(oldElements, newElements, oldPlaces, newPlaces).map((step) =>
    typeof step === "number" ? old[step] : merged(step),
  );
  const unchanged = result.length === old.length && result.every((item, place) => item === old[place]);
  return unchanged ? live : result;
}

/** Where each element is; -1 for those that are there more than once. */
function uniqueIndexes(elements: Elements): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const [place, element] of elements.entries()) places.set(element, places.has(element) ? -1 : place);
  return places;
}

/**
 * The order of a merged list: a number is the place of a live item that is not applied, a text the element of an
 * applied one. Live items stay behind the live items they followed; applied ones come in the order they are applied.
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
        // Shared, but another one's turn.
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
