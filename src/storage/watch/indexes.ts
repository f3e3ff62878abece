import type { ApiObject } from "../../api/kind.ts";
import { SortedObjects } from "../../std/collections/sorted-objects.ts";
import type { EncodedObject } from "./encoded-object.ts";

/** By name of the index: returns the value of an object; undefined for none. */
export type IndexFunctions<T> = Readonly<Record<string, (object: T) => string | undefined>>;

/** Secondary indexes over the objects of a cache: `pods` by `spec.nodeName`. */
export class Indexes<T extends ApiObject> {
  readonly #functions: IndexFunctions<T>;
  readonly #values = new Map<string, Map<string, SortedObjects<EncodedObject<T>>>>();

  constructor(functions: IndexFunctions<T>) {
    this.#functions = functions;
    for (const name of Object.keys(functions)) this.#values.set(name, new Map());
  }

  valueOf(index: string, object: T): string | undefined {
    return this.#function(index)(object);
  }

  /** In key order. */
  find(index: string, value: string): readonly EncodedObject<T>[] {
    this.#function(index);
    return this.#values.get(index)?.get(value)?.prefixed("") ?? [];
  }

  replace(previous: EncodedObject<T> | undefined, current: EncodedObject<T> | undefined): void {
    for (const [name, values] of this.#values) {
      const before = previous && this.valueOf(name, previous.object);
      const after = current && this.valueOf(name, current.object);
      if (previous !== undefined && before !== undefined && before !== after) {
        const found = values.get(before);
        found?.delete(previous.key);
        if (found?.size === 0) values.delete(before);
      }
      if (current === undefined || after === undefined) continue;
      let found = values.get(after);
      if (found === undefined) {
        found = new SortedObjects();
        values.set(after, found);
      }
      found.set(current);
    }
  }

  /** Only these objects are in the indexes then. */
  rebuild(objects: readonly EncodedObject<T>[]): void {
    for (const values of this.#values.values()) values.clear();
    for (const object of objects) this.replace(undefined, object);
  }

  #function(index: string): (object: T) => string | undefined {
    const found = this.#functions[index];
    if (found === undefined) throw new RangeError(`Cannot use index "${index}": the cache has none of that name`);
    return found;
  }
}
