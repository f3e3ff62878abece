/** Freezes a JSON-like value recursively and returns it; skips parts that are frozen already. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) freeze(value);
  return value;
}

/** Hot path for every object in the watch cache: iterates without allocating lists of members. */
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
