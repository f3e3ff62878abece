/**
 * Kubernetes' strategic merge patch: a merge patch in which the schema determines how lists merge, and directives
 * delete, replace and order (`$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`).
 */

import { memberOf } from "../members.ts";
import type { ObjectSchema, Schema } from "../schema.ts";
import { formatGoValue } from "../value/format-go-value.ts";
import { isPlainObject, setMember } from "../value/plain-object.ts";
import { orderItems } from "./element-order.ts";
import { ItemIndex, type Items, isSameItem, uniqueItems } from "./item-identity.ts";

/** The patch contradicts itself or its schema (`content`), or a directive is malformed (`format`). */
export class PatchError extends Error {
  override readonly name = "PatchError";
  readonly code: "content" | "format";
  constructor(message: string, code: PatchError["code"] = "content") {
    super(message);
    this.code = code;
  }
}

export const patchDirective = "$patch";
export const retainKeys = "$retainKeys";
export const orderPrefix = "$setElementOrder/";
export const deletePrefix = "$deleteFromPrimitiveList/";

export type Members = Readonly<Record<string, unknown>>;

/** Returns the merged object and does not change its inputs. Throws a `PatchError` when the patch is invalid. */
export function strategicMergePatch(schema: ObjectSchema, current: unknown, patch: unknown): unknown {
  if (!isPlainObject(patch)) throw new PatchError("the patch must be an object");
  return mergeObjects(isPlainObject(current) ? current : {}, patch, schema);
}

/** How the schema merges a member. */
export interface MergeStrategy {
  readonly schema: Schema | undefined;
  readonly merge: boolean;
  readonly replace: boolean;
  /** Patches list the members to keep in `$retainKeys`. */
  readonly retainKeys: boolean;
  readonly mergeKey: string;
}

export function mergeStrategyOf(schema: Schema | undefined, name: string): MergeStrategy {
  if (schema?.type === "map") {
    return { schema: schema.values, merge: false, replace: false, retainKeys: false, mergeKey: "" };
  }
  const member = schema?.type === "object" ? memberOf(schema, name) : undefined;
  const strategies = member?.field.patchStrategy?.split(",") ?? [];
  return {
    schema: member?.schema.type === "list" ? member.schema.items : member?.schema,
    merge: strategies.includes("merge"),
    replace: strategies.includes("replace"),
    retainKeys: strategies.includes("retainKeys"),
    mergeKey: member?.field.patchMergeKey ?? "",
  };
}

function mergeObjects(current: Members, patch: Members, schema: Schema | undefined): Members {
  const directive = patch[patchDirective];
  if (directive !== undefined) {
    const { [patchDirective]: _, ...rest } = patch;
    if (directive === "replace") return removeDirectives(rest) as Members;
    if (directive === "delete") return {};
    if (directive !== "merge") throw unknownDirective(directive, patch);
  }
  const result = retainMembers(current, patch);
  const rest = new Map(Object.entries(patch).filter(([name]) => name !== patchDirective && name !== retainKeys));
  for (const [name, order] of [...rest]) {
    if (!name.startsWith(orderPrefix)) continue;
    rest.delete(name);
    const field = name.slice(orderPrefix.length);
    const ordered = mergeOrderedList(result[field], rest.get(field), order, mergeStrategyOf(schema, field));
    rest.delete(field);
    if (ordered !== undefined) setMember(result, field, ordered);
  }
  for (const [name, value] of rest) applyMember(result, name, value, schema);
  return result;
}

/** A copy of `current` with only the members in `$retainKeys`. */
function retainMembers(current: Members, patch: Members): Record<string, unknown> {
  const keep = patch[retainKeys];
  if (keep === undefined) return copyMembers(current);
  if (!Array.isArray(keep)) throw new PatchError("invalid patch format of retainKeys", "format");
  const kept = new Set<unknown>(keep);
  for (const name of Object.keys(patch)) {
    if (!name.startsWith("$") && patch[name] !== null && !kept.has(name)) {
      throw new PatchError("patch content doesn't match retainKeys list");
    }
  }
  return copyMembers(current, (name) => kept.has(name));
}

function copyMembers(members: Members, keep: (name: string) => boolean = () => true): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(members)) if (keep(name)) setMember(copy, name, members[name]);
  return copy;
}

function applyMember(result: Record<string, unknown>, name: string, value: unknown, schema: Schema | undefined): void {
  if (name.startsWith(deletePrefix)) {
    const field = name.slice(deletePrefix.length);
    const list = result[field];
    // A value that is not a list has no effect, as in Kubernetes.
    if (Array.isArray(list) && Array.isArray(value)) {
      const deleted = new ItemIndex(value, "");
      setMember(
        result,
        field,
        list.filter((item) => !deleted.has(item)),
      );
    }
    return;
  }
  if (value === null) {
    delete result[name];
    return;
  }
  const old = Object.hasOwn(result, name) ? result[name] : undefined;
  const strategy = mergeStrategyOf(schema, name);
  if (isPlainObject(old) && isPlainObject(value) && !strategy.replace) {
    setMember(result, name, mergeObjects(old, value, strategy.schema));
  } else if (Array.isArray(old) && Array.isArray(value) && strategy.merge) {
    setMember(result, name, mergeLists(old, value, strategy).items);
  } else if (Array.isArray(old) && Array.isArray(value)) {
    setMember(result, name, value);
  } else {
    const fresh = removeDirectives(value);
    if (fresh !== undefined) setMember(result, name, fresh);
    else delete result[name];
  }
}

interface MergedList {
  readonly items: Items;
  /**
   * The live order for a later `$setElementOrder` directive: new items take the positions of deleted ones, as in
   * Kubernetes.
   */
  readonly liveOrder: Items;
}

function mergeLists(current: Items, patch: Items, strategy: MergeStrategy): MergedList {
  if (current.length === 0 && patch.length === 0) return { items: current, liveOrder: current };
  if (!isPlainObject(current[0] ?? patch[0])) {
    return { items: orderItems(uniqueItems([...current, ...patch]), patch, current, ""), liveOrder: current };
  }
  const { mergeKey } = strategy;
  if (mergeKey === "") throw new PatchError("cannot merge lists of objects without a merge key");
  const { live, items } = applyItemDirectives(current, patch, mergeKey);
  const merged: unknown[] = [...live];
  const mergedIndex = new ItemIndex(live, mergeKey);
  for (const item of items) {
    const index = mergedIndex.indexOf(item);
    if (index >= 0) merged[index] = mergeObjects(merged[index] as Members, item, strategy.schema);
    else {
      const fresh = removeDirectives(item);
      mergedIndex.add(fresh, merged.push(fresh) - 1);
    }
  }
  return { items: orderItems(merged, items, live, mergeKey), liveOrder: merged.slice(0, current.length) };
}

/** Applies the items that are directives; returns the remaining items and the list to merge them into. */
function applyItemDirectives(
  current: Items,
  patch: Items,
  mergeKey: string,
): { live: Items; items: readonly Members[] } {
  let replaced = false;
  const items: Members[] = [];
  const deleted: Members[] = [];
  for (const item of patch) {
    if (!isPlainObject(item)) throw new PatchError("the items of a list must all be objects or none");
    const directive = item[patchDirective];
    if (directive === "replace") replaced = true;
    else if (directive !== undefined && directive !== "delete") throw unknownDirective(directive, item);
    else if (item[mergeKey] === undefined) {
      throw new PatchError(`map: ${formatGoValue(item)} does not contain declared merge key: ${mergeKey}`);
    } else if (directive === "delete") deleted.push(item);
    else items.push(item);
  }
  const deletedIndex = new ItemIndex(deleted, mergeKey);
  const live = deleted.length === 0 ? current : current.filter((item) => !deletedIndex.has(item));
  return replaced ? { live: items.map((item) => removeDirectives(item)), items: [] } : { live, items };
}

/** Merges a list with a `$setElementOrder` directive; undefined when there is no list. */
function mergeOrderedList(
  current: unknown,
  patch: unknown,
  order: unknown,
  strategy: MergeStrategy,
): Items | undefined {
  if (!Array.isArray(order)) throw new PatchError("invalid patch format of setElementOrder list", "format");
  const live: Items = Array.isArray(current) ? current : [];
  if (!Array.isArray(patch)) {
    return Array.isArray(current) && patch !== null ? orderItems(live, order, live, strategy.mergeKey) : undefined;
  }
  checkOrder(patch, order, strategy.mergeKey);
  const replaced = { items: Array.isArray(current) ? patch : (removeDirectives(patch) as Items), liveOrder: live };
  const merged = Array.isArray(current) && strategy.merge ? mergeLists(live, patch, strategy) : replaced;
  return orderItems(merged.items, order, merged.liveOrder, strategy.mergeKey);
}

/** Every item of the patch must be in the order list, in that order. */
function checkOrder(patch: Items, order: Items, mergeKey: string): void {
  let index = 0;
  for (const item of patch) {
    if (isPlainObject(item) && item[patchDirective] === "delete") continue;
    while (index < order.length && !isSameItem(order[index], item, mergeKey)) index++;
    if (index++ >= order.length) {
      const lists = `${formatGoValue(patch)}\n doesn't match $setElementOrder list:\n${formatGoValue(order)}`;
      throw new PatchError(`The order in patch list:\n${lists}\n`);
    }
  }
}

/** Removes nulls and directives from a value that is added. Undefined when it has a delete directive itself. */
function removeDirectives(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map((item) => (item === null ? null : removeDirectives(item))).filter((item) => item !== undefined);
  }
  if (!isPlainObject(value)) return value;
  if (value[patchDirective] === "delete") return undefined;
  const result: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const isDirective =
      name === patchDirective || name === retainKeys || name.startsWith(orderPrefix) || name.startsWith(deletePrefix);
    if (isDirective || value[name] === null) continue;
    const member = removeDirectives(value[name]);
    if (member !== undefined) setMember(result, name, member);
  }
  return result;
}

function unknownDirective(directive: unknown, where: unknown): PatchError {
  return new PatchError(`unknown patch type: ${String(directive)} in map: ${formatGoValue(where)}`);
}
