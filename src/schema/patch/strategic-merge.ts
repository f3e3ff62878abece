/**
 * Kubernetes' strategic merge patch: a merge patch in which the schema determines how lists merge, and directives
 * delete, replace and order (`$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`).
 */

import { memberOf } from "../members.ts";
import type { ObjectSchema, Schema } from "../schema.ts";
import { formatGoValue } from "../value/format-go-value.ts";
import { goQuote } from "../value/go-quote.ts";
import { getMember, isPlainObject, setMember } from "../value/plain-object.ts";
import { orderItems } from "./element-order.ts";
import { ItemIndex, type Items, isSameItem, uniqueItems } from "./item-identity.ts";

/**
 * The patch contradicts itself or its schema (`content`), a directive is malformed (`format`), or a list contains lists
 * (`unsupported`). The message is Kubernetes'.
 */
export class PatchError extends Error {
  override readonly name = "PatchError";
  readonly code: "content" | "format" | "unsupported";
  constructor(message: string, code: PatchError["code"] = "content") {
    super(message);
    this.code = code;
  }
}

export const patchDirective = "$patch";
export const retainKeys = "$retainKeys";
const ORDER_DIRECTIVE = "$setElementOrder";
const DELETE_DIRECTIVE = "$deleteFromPrimitiveList";
export const orderPrefix = `${ORDER_DIRECTIVE}/`;
export const deletePrefix = `${DELETE_DIRECTIVE}/`;

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
    throw unknownDirective(directive, patch);
  }
  const result = retainMembers(current, patch);
  const names = Object.keys(patch).filter((name) => name !== patchDirective && name !== retainKeys);
  const done = new Set<string>();
  for (const name of names) {
    if (!name.startsWith(ORDER_DIRECTIVE)) continue;
    const order = patch[name];
    done.add(name);
    checkList(order);
    if (!name.startsWith(orderPrefix)) throw new PatchError("invalid patch format of setElementOrder list", "format");
    const field = name.slice(orderPrefix.length);
    const list = done.has(field) ? undefined : getMember(patch, field);
    for (const each of [result[field], list]) if (each !== undefined) checkList(each);
    checkField(schema, field);
    const ordered = mergeOrderedList(result[field], list, order, mergeStrategyOf(schema, field));
    done.add(field);
    if (ordered !== undefined) setMember(result, field, ordered);
  }
  for (const name of names) {
    if (done.has(name)) continue;
    const value = patch[name];
    // Most members of a long patch are scalars.
    if (isScalar(value) && !name.startsWith(DELETE_DIRECTIVE)) setMember(result, name, value);
    else applyMember(result, name, value, schema);
  }
  return result;
}

function isScalar(value: unknown): boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

/** A copy of `current` with only the members in `$retainKeys`. */
function retainMembers(current: Members, patch: Members): Record<string, unknown> {
  const keep = patch[retainKeys];
  if (keep === undefined) return copyMembers(current);
  if (!Array.isArray(keep)) throw new PatchError("invalid patch format of retainKeys", "format");
  const kept = new Set<unknown>(keep);
  for (const name of Object.keys(patch)) {
    const isDirective = name === retainKeys || name.startsWith(DELETE_DIRECTIVE) || name.startsWith(ORDER_DIRECTIVE);
    if (isDirective || patch[name] === null || kept.has(name)) continue;
    throw new PatchError("invalid patch format of retainKeys", "format");
  }
  return copyMembers(current, kept);
}

/** A spread takes half as long again for tens of thousands of members. */
function copyMembers(members: Members, kept?: ReadonlySet<unknown>): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(members)) if (kept?.has(name) !== false) setMember(copy, name, members[name]);
  return copy;
}

function applyMember(result: Record<string, unknown>, name: string, value: unknown, schema: Schema | undefined): void {
  if (name.startsWith(DELETE_DIRECTIVE)) {
    if (!name.startsWith(deletePrefix)) throw new PatchError("invalid patch format of primitive list", "format");
    deleteItems(result, name.slice(deletePrefix.length), value, schema);
    return;
  }
  if (value === null) {
    delete result[name];
    return;
  }
  const old = getMember(result, name);
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

/** Deletes values from a list, or the whole list for null. A value that is not a list has no effect. */
function deleteItems(result: Record<string, unknown>, name: string, value: unknown, schema: Schema | undefined): void {
  const list = result[name];
  if (value === null) delete result[name];
  if (!Array.isArray(list) || !Array.isArray(value)) return;
  const isOfObjects = elementType(list, value) === "map[string]interface {}";
  const deleted = new ItemIndex(isOfObjects ? [] : value, "");
  const rest = isOfObjects
    ? mergeLists(list, value, mergeStrategyOf(schema, name)).items
    : list.filter((item) => !deleted.has(item));
  setMember(result, name, rest);
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
  if (elementType(current, patch) !== "map[string]interface {}") {
    return { items: orderItems(uniqueItems([...current, ...patch]), patch, current, ""), liveOrder: current };
  }
  const { mergeKey } = strategy;
  if (mergeKey === "") throw new PatchError("cannot merge lists without merge key");
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
  for (const item of patch as readonly Members[]) {
    const directive = item[patchDirective];
    if (directive === undefined) items.push(item);
    else if (directive === "replace") replaced = true;
    else if (directive === "merge") throw new PatchError("merging lists cannot yet be specified in the patch");
    else if (directive !== "delete") throw unknownDirective(directive, item);
    else if (item[mergeKey] === undefined) throw noMergeKey(item, mergeKey);
    else deleted.push(item);
  }
  const keyless = items.find((item) => item[mergeKey] === undefined);
  if (keyless !== undefined) throw noMergeKey(keyless, mergeKey);
  const deletedIndex = new ItemIndex(deleted, mergeKey);
  const live = deleted.length === 0 ? current : current.filter((item) => !deletedIndex.has(item));
  return replaced ? { live: items.map((item) => removeDirectives(item)), items: [] } : { live, items };
}

/** Merges a list with a `$setElementOrder` directive; undefined when there is no list. */
function mergeOrderedList(current: unknown, patch: unknown, order: Items, strategy: MergeStrategy): Items | undefined {
  const live: Items = Array.isArray(current) ? current : [];
  if (!Array.isArray(patch)) {
    if (!Array.isArray(current)) return undefined;
    checkOrderItems(live, order, strategy.mergeKey);
    return orderItems(live, order, live, strategy.mergeKey);
  }
  checkOrder(patch, order, strategy.mergeKey);
  const replaced = { items: Array.isArray(current) ? patch : (removeDirectives(patch) as Items), liveOrder: live };
  const merged = Array.isArray(current) && strategy.merge ? mergeLists(live, patch, strategy) : replaced;
  checkOrderItems(merged.items, order, strategy.mergeKey);
  return orderItems(merged.items, order, merged.liveOrder, strategy.mergeKey);
}

/** Items of objects are looked up in an order list of objects. */
function checkOrderItems(items: Items, order: Items, mergeKey: string): void {
  if (mergeKey === "" || items.length === 0) return;
  const index = order.findIndex((item) => !isPlainObject(item));
  if (index < 0) return;
  const before = new ItemIndex(order.slice(0, index), mergeKey);
  if (items.some((item) => !before.has(item))) throw new PatchError(`value for key ${index} is not a map.`);
}

/** Every item of the patch must be in the order list, in that order. */
function checkOrder(patch: Items, order: Items, mergeKey: string): void {
  if (patch.length === 0 || order.length === 0) return;
  let index = 0;
  for (const item of patch) {
    if (mergeKey !== "") checkMap(item);
    if (mergeKey !== "" && isPlainObject(item) && item[patchDirective] !== undefined) continue;
    if (mergeKey !== "" && index < order.length) checkOrderKeys(item as Members, order[index], mergeKey);
    while (index < order.length && !isSameItem(order[index], item, mergeKey)) index++;
    if (index++ >= order.length) {
      const lists = `${formatGoValue(patch)}\n doesn't match $setElementOrder list:\n${formatGoValue(order)}`;
      throw new PatchError(`The order in patch list:\n${lists}\n`);
    }
  }
}

function checkOrderKeys(item: Members, ordered: unknown, mergeKey: string): void {
  checkMap(ordered);
  for (const map of [item, ordered]) if (map[mergeKey] === undefined) throw noMergeKey(map, mergeKey);
}

function checkMap(value: unknown): asserts value is Members {
  if (isPlainObject(value)) return;
  throw new PatchError(`expected a map[string]interface {}, but received a ${typeVerb(value)}`);
}

function checkList(value: unknown): asserts value is Items {
  if (Array.isArray(value)) return;
  throw new PatchError(`expected a []interface {}, but received a ${typeVerb(value)}`);
}

function checkField(schema: Schema | undefined, field: string): void {
  if (schema?.type !== "object" || memberOf(schema, field) !== undefined) return;
  const struct = schema.name.slice(schema.name.lastIndexOf(".") + 1);
  throw new PatchError(`unable to find api field in struct ${struct} for the json field ${goQuote(field)}`);
}

/** The Go type of the items of both lists. Throws when they differ. */
function elementType(current: Items, patch: Items): string {
  const [first = ""] = [...current.slice(0, 1), ...patch.slice(0, 1)].map(goTypeOf);
  if (first === "[]interface {}") throw new PatchError("lists of lists are not supported", "unsupported");
  if ([current, patch].every((list) => list.every((item) => goTypeOf(item) === first))) return first;
  throw new PatchError(`list element types are not identical: ${formatGoValue([current, patch])}`);
}

function goTypeOf(value: unknown): string {
  if (Array.isArray(value)) return "[]interface {}";
  if (isPlainObject(value)) return "map[string]interface {}";
  if (typeof value === "bigint") return "int64";
  if (typeof value === "number") return Number.isInteger(value) ? "int64" : "float64";
  return typeof value === "boolean" ? "bool" : value === null ? "nil" : typeof value;
}

/** The type as Go prints it for `%s`. */
function typeVerb(value: unknown): string {
  return value === null ? "%!s(<nil>)" : goTypeOf(value);
}

function noMergeKey(item: unknown, mergeKey: string): PatchError {
  return new PatchError(`map: ${formatGoValue(item)} does not contain declared merge key: ${mergeKey}`);
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
  const isText = typeof directive === "string" || (typeof directive === "object" && directive !== null);
  const bad = directive === null ? "<nil>" : `${goTypeOf(directive)}=${String(directive)}`;
  const shown = isText ? formatGoValue(directive) : `%!s(${bad})`;
  return new PatchError(`unknown patch type: ${shown} in map: ${formatGoValue(where)}`);
}
