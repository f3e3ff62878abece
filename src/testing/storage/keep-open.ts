import type { Store } from "../../storage/store.ts";

/** A store that several servers use, none of which closes it. */
export function keepOpen(store: Store): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name === Symbol.asyncDispose) return async () => {};
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
