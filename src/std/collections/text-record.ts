/** An object for texts with untrusted names: it inherits no member, such as `constructor`. */
export function createTextRecord(): Record<string, string> {
  return Object.create(NO_MEMBERS);
}

/** The prototype: without one V8 would keep the members in a hash table, which is slower and larger. */
const NO_MEMBERS: object = Object.create(null);
