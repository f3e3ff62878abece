/**
 * Creates strategic merge patches from two versions of an object, or from three.
 *
 *     strategicDiff(schema, original, modified)                 changes, additions and deletions
 *     strategicDiffOf(schema, { original, modified, current })  deletions since `original`, changes against `current`
 */

import { stringifyExact } from "../json/exact-numbers.ts";
import type { ObjectSchema, Schema } from "../schema.ts";
import { deepEqual } from "../value/equal.ts";
import { getMember, isPlainObject, setMember } from "../value/plain-object.ts";
import { orderItems } from "./element-order.ts";
import { ItemIndex, type Items, isSameItem, itemIdentity, uniqueItems, valueIdentity } from "./item-identity.ts";
import {
  deletePrefix,
  type Members,
  type MergeStrategy,
  mergeStrategyOf,
  orderPrefix,
  PatchError,
  patchDirective,
  retainKeys,
} from "./strategic-merge.ts";

/** Which differences the patch contains: changes and additions, or deletions. */
interface DiffOptions {
  readonly changes: boolean;
  readonly deletions: boolean;
}

/** The patch from `original` to `modified`; empty when they are equal. */
export function createTwoWayMergePatch(schema: ObjectSchema, original: unknown, modified: unknown): Members {
  return diffObjects(asMembers(original), asMembers(modified), schema, { changes: true, deletions: true }, false);
}

/**
 * The patch of an apply: changes and additions from `current` to `modified`, deletions from `original` to `modified`.
 * Fields that only `current` has stay unchanged.
 */
export function createThreeWayMergePatch(
  schema: ObjectSchema,
  {
    original,
    modified,
    current,
  }: { readonly original: unknown; readonly modified: unknown; readonly current: unknown },
): Members {
  const desired = asMembers(modified);
  const changes = diffObjects(asMembers(current), desired, schema, { changes: true, deletions: false }, false);
  const deletions = diffObjects(asMembers(original), desired, schema, { changes: false, deletions: true }, false);
  return mergePatches(deletions, changes, schema);
}

function asMembers(value: unknown): Members {
  if (value === null || value === undefined) return {};
  if (!isPlainObject(value)) throw new PatchError("only objects have strategic differences");
  return value;
}

function diffObjects(
  from: Members,
  to: Members,
  schema: Schema | undefined,
  options: DiffOptions,
  retains: boolean,
): Members {
  const patch: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(to)) {
    const old = getMember(from, name);
    if (isPlainObject(old) && isPlainObject(value))
      diffMember(patch, name, old, value, mergeStrategyOf(schema, name), options);
    else if (Array.isArray(old) && Array.isArray(value)) {
      diffList(patch, name, old, value, mergeStrategyOf(schema, name), options);
    } else if (options.changes && !deepEqual(old, value)) setMember(patch, name, value);
  }
  const removed = Object.keys(from).filter((name) => !Object.hasOwn(to, name));
  if (options.deletions) for (const name of removed) setMember(patch, name, null);
  const kept = Object.keys(to).filter((name) => to[name] !== null);
  const changed = removed.length > 0 || Object.keys(patch).length > 0;
  return retains && changed && kept.length > 0 ? { ...patch, [retainKeys]: kept.sort() } : patch;
}

function diffMember(
  patch: Record<string, unknown>,
  name: string,
  from: Members,
  to: Members,
  strategy: MergeStrategy,
  options: DiffOptions,
): void {
  if (strategy.replace) {
    if (options.changes && !deepEqual(from, to)) setMember(patch, name, to);
    return;
  }
  const nested = diffObjects(from, to, strategy.schema, options, strategy.retainKeys);
  if (Object.keys(nested).length > 0) setMember(patch, name, nested);
}

function diffList(
  patch: Record<string, unknown>,
  name: string,
  from: Items,
  to: Items,
  strategy: MergeStrategy,
  options: DiffOptions,
): void {
  if (!strategy.merge || from.length === 0) {
    if (options.changes && !deepEqual(from, to)) setMember(patch, name, to);
    return;
  }
  const objects = isPlainObject(from[0] ?? to[0]);
  const key = objects ? mergeKeyOf(strategy, name) : "";
  const { items, deleted } = objects
    ? { items: diffItems(from, to, key, strategy, options), deleted: [] }
    : diffScalars(from, to, options);
  if (items.length > 0) setMember(patch, name, items);
  if (deleted.length > 0) patch[deletePrefix + name] = deleted;
  const sameOrder = from.length === to.length && from.every((item, index) => isSameItem(item, to[index], key));
  if (to.length > 0 && (items.length > 0 || deleted.length > 0 || (options.changes && !sameOrder))) {
    patch[orderPrefix + name] = objects ? to.map((item) => pickMergeKey(item, key)) : to;
  }
}

function mergeKeyOf({ mergeKey }: MergeStrategy, name: string): string {
  if (mergeKey === "") throw new PatchError(`the list ${name} merges objects but has no merge key`);
  return mergeKey;
}

function pickMergeKey(item: unknown, key: string): Members {
  if (!isPlainObject(item) || item[key] === undefined) {
    throw new PatchError(`map: ${stringifyExact(item)} does not contain declared merge key: ${key}`);
  }
  return { [key]: item[key] };
}

/**
 * The items of the patch in the order of `to`, followed by the deletions. Items with duplicate keys, which are invalid,
 * correspond in order.
 */
function diffItems(from: Items, to: Items, key: string, strategy: MergeStrategy, options: DiffOptions): Items {
  const left = new ItemQueues(from, (item) => itemIdentity(item, key));
  const items: Members[] = [];
  for (const item of to) {
    const named = pickMergeKey(item, key);
    const old = left.shift(item);
    if (isPlainObject(old)) {
      const nested = diffObjects(old, item as Members, strategy.schema, options, strategy.retainKeys);
      if (Object.keys(nested).length > 0) items.push({ ...nested, ...named });
    } else if (options.changes) items.push(item as Members);
  }
  if (options.deletions) {
    for (const item of left.rest()) items.push({ [patchDirective]: "delete", ...pickMergeKey(item, key) });
  }
  return items;
}

/** Compares lists of scalars as multisets, since they can contain duplicates. */
function diffScalars(from: Items, to: Items, options: DiffOptions): { readonly items: Items; readonly deleted: Items } {
  const surplus = (list: Items, other: Items): Items => {
    const left = new ItemQueues(other, valueIdentity);
    return list.filter((item) => !left.remove(item));
  };
  const deleted = options.deletions ? surplus(from, to) : [];
  return { items: options.changes ? surplus(to, from) : [], deleted: uniqueItems(deleted) };
}

/** The items of a list by identity; equal ones are removed in the order of the list. */
class ItemQueues {
  readonly #items: Items;
  readonly #identityOf: (item: unknown) => string | undefined;
  /** Indexes in descending order. */
  readonly #queues = new Map<string, number[]>();
  readonly #removed = new Set<number>();

  constructor(items: Items, identityOf: (item: unknown) => string | undefined) {
    this.#items = items;
    this.#identityOf = identityOf;
    for (let index = items.length - 1; index >= 0; index--) {
      const identity = identityOf(items[index]);
      if (identity === undefined) continue;
      const queue = this.#queues.get(identity);
      if (queue === undefined) this.#queues.set(identity, [index]);
      else queue.push(index);
    }
  }

  /** Removes the first item that equals this one; false when there is none. */
  remove(item: unknown): boolean {
    return this.#removeIndex(item) !== undefined;
  }

  /** Removes and returns the first item that equals this one. */
  shift(item: unknown): unknown {
    const index = this.#removeIndex(item);
    return index === undefined ? undefined : this.#items[index];
  }

  rest(): Items {
    return this.#items.filter((_, index) => !this.#removed.has(index));
  }

  #removeIndex(item: unknown): number | undefined {
    const identity = this.#identityOf(item);
    const index = identity === undefined ? undefined : this.#queues.get(identity)?.pop();
    if (index !== undefined) this.#removed.add(index);
    return index;
  }
}

/** Merges the patches of deletions and of changes; where both have a value, that of the changes wins. */
function mergePatches(deletions: Members, changes: Members, schema: Schema | undefined): Members {
  const joined: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(deletions)) setMember(joined, name, value);
  for (const [name, value] of Object.entries(changes)) {
    const other = getMember(joined, name);
    const strategy = mergeStrategyOf(schema, name);
    if (isPlainObject(other) && isPlainObject(value))
      setMember(joined, name, mergePatches(other, value, strategy.schema));
    else if (Array.isArray(other) && Array.isArray(value) && !name.startsWith("$") && strategy.merge) {
      const order = changes[orderPrefix + name] ?? deletions[orderPrefix + name];
      setMember(joined, name, mergeListPatches(other, value, Array.isArray(order) ? order : value, strategy));
    } else setMember(joined, name, Array.isArray(value) ? removeDeletions(value) : value);
  }
  return joined;
}

function mergeListPatches(deletions: Items, changes: Items, order: Items, { schema, mergeKey }: MergeStrategy): Items {
  const deletionIndex = new ItemIndex(deletions, mergeKey);
  const changeIndex = new ItemIndex(changes, mergeKey);
  const joined = changes.map((item) => {
    const other = mergeKey === "" ? undefined : deletions[deletionIndex.indexOf(item)];
    return isPlainObject(other) && isPlainObject(item) ? mergePatches(other, item, schema) : item;
  });
  const others = deletions.filter((item) => !changeIndex.has(item));
  return orderItems([...joined, ...others], order, deletions, mergeKey);
}

/** Removes delete directives from a list that replaces another, where they have no effect. */
function removeDeletions(items: Items): Items {
  return items.filter((item) => !(isPlainObject(item) && item[patchDirective] === "delete"));
}
