/** Plain objects made from text that strangers wrote. */

export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

/** Assigns a member, `__proto__` included: as a member of its own, never as the prototype. */
export function setMember(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === "__proto__") {
    Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
  } else target[name] = value;
}

/** Asks nobody for a list of names. */
export function hasNoMembers(value: object): boolean {
  for (const _ in value) return false;
  return true;
}

/** By their UTF-16 units. Mostly they are in order already. */
export function sortedNames(members: object): readonly string[] {
  const names = Object.keys(members);
  for (let index = 1; index < names.length; index++) {
    if (names[index - 1]! > names[index]!) return names.sort();
  }
  return names;
}
