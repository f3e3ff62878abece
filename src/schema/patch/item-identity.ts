/** Identities of list items, so that maps and sets find equal items in lists of any length. */
import { canonicalJson } from "../json/canonical-json.ts";
import { isPlainObject } from "../value/plain-object.ts";

export type Items = readonly unknown[];

/** A text that equal JSON values share and different ones do not. */
export function valueIdentity(value: unknown): string {
  if (typeof value === "string") return `"${value}`;
  return typeof value === "object" && value !== null ? canonicalJson(value) : String(value);
}

/** The identity of an item's merge key, or of its value without one. Undefined for an item that equals no other. */
export function itemIdentity(item: unknown, mergeKey: string): string | undefined {
  if (mergeKey === "") return valueIdentity(item);
  return isPlainObject(item) ? valueIdentity(item[mergeKey]) : undefined;
}

export function isSameItem(a: unknown, b: unknown, mergeKey: string): boolean {
  const identity = itemIdentity(a, mergeKey);
  return identity !== undefined && identity === itemIdentity(b, mergeKey);
}

/** The items by identity. Of equal items the index is that of the first. */
export class ItemIndex {
  readonly #indexes = new Map<string, number>();
  readonly #mergeKey: string;

  constructor(items: Items, mergeKey: string) {
    this.#mergeKey = mergeKey;
    for (const [index, item] of items.entries()) this.add(item, index);
  }

  add(item: unknown, index: number): void {
    const identity = itemIdentity(item, this.#mergeKey);
    if (identity !== undefined && !this.#indexes.has(identity)) this.#indexes.set(identity, index);
  }

  /** The index of the first item that equals this one; -1 when there is none. */
  indexOf(item: unknown): number {
    const identity = itemIdentity(item, this.#mergeKey);
    return identity === undefined ? -1 : (this.#indexes.get(identity) ?? -1);
  }

  has(item: unknown): boolean {
    return this.indexOf(item) >= 0;
  }
}

/** The items without later equal ones. */
export function uniqueItems(items: Items): unknown[] {
  const unique = new Map<string, unknown>();
  for (const item of items) {
    const identity = valueIdentity(item);
    if (!unique.has(identity)) unique.set(identity, item);
  }
  return [...unique.values()];
}
