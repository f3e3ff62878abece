/** Whether two JSON-like values are equal. A member that is `undefined` counts as absent. */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && equalLists(a, b);
  if (a instanceof Uint8Array || b instanceof Uint8Array) {
    return a instanceof Uint8Array && b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  }
  return equalObjects(a as Readonly<Record<string, unknown>>, b as Readonly<Record<string, unknown>>);
}

function equalLists(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) if (!deepEqual(a[index], b[index])) return false;
  return true;
}

function equalObjects(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  let members = 0;
  for (const name in a) {
    if (a[name] === undefined) continue;
    members++;
    if (!Object.hasOwn(b, name) || !deepEqual(a[name], b[name])) return false;
  }
  for (const name in b) if (b[name] !== undefined) members--;
  return members === 0;
}
