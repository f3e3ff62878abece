/** Freezes a JSON-like value all the way down and returns it; parts that are frozen already are taken as done. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) freeze(value);
  return value;
}

/** Without lists of members: most objects of a server pass through here, and again whenever they change. */
function freeze(value: object): void {
  if (Object.isFrozen(value) || ArrayBuffer.isView(value)) return;
  Object.freeze(value);
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index];
      if (typeof item === "object" && item !== null) freeze(item);
    }
    return;
  }
  for (const name in value) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    if (typeof member === "object" && member !== null) freeze(member);
  }
}
