/** Plain objects with untrusted member names, such as `__proto__`. */
import { NumberLiteral } from "./number-literal.ts";

export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !ArrayBuffer.isView(value) &&
    !(value instanceof NumberLiteral)
  );
}

/** Assigns an own member; `__proto__` never becomes the prototype. */
export function setMember(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === "__proto__") {
    Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
  } else target[name] = value;
}

/** An own member; undefined when there is none. Every object inherits others, such as `constructor`. */
export function getMember<T>(from: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return from !== undefined && Object.hasOwn(from, name) ? from[name] : undefined;
}

/** A copy that may be changed, as `JSON.parse` would return the value's text: without members that are undefined. */
export function copyJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyJson);
  if (!isPlainObject(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const member = value[name];
    if (member !== undefined) setMember(copy, name, copyJson(member));
  }
  return copy;
}

/** V8 lists all members of a large object before a loop visits the first: a loop that ends early is not short. */
const largeObjects = new WeakSet<object>();
const LARGE_MIN = 256;

/** Does not allocate a list of names. The value must not lose members after the first call. */
export function hasNoMembers(value: object): boolean {
  return countMembers(value) === 0;
}

/** As `hasNoMembers`; more than `LARGE_MIN` members count as that many. */
export function countMembers(value: object): number {
  if (largeObjects.has(value)) return LARGE_MIN;
  let count = 0;
  for (const _ in value) {
    count++;
    if (count < LARGE_MIN) continue;
    largeObjects.add(value);
    break;
  }
  return count;
}

/** Sorted by UTF-16 code units. Most objects are sorted already. */
export function sortedNames(members: object): readonly string[] {
  const names = Object.keys(members);
  for (let index = 1; index < names.length; index++) {
    if (names[index - 1]! > names[index]!) return names.sort();
  }
  return names;
}
