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

/** Does not allocate a list of names. */
export function hasNoMembers(value: object): boolean {
  for (const _ in value) return false;
  return true;
}

/** Sorted by UTF-16 code units. Most objects are sorted already. */
export function sortedNames(members: object): readonly string[] {
  const names = Object.keys(members);
  for (let index = 1; index < names.length; index++) {
    if (names[index - 1]! > names[index]!) return names.sort();
  }
  return names;
}
