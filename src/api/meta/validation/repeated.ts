/** Finds equal items in time linear in the length of lists. */
import { canonicalJson } from "../../../schema/json/canonical-json.ts";
import { deepEqual } from "../../../schema/value/equal.ts";

/** The indexes of the items that equal an earlier one. */
export function repeatedIndexes(items: readonly unknown[]): ReadonlySet<number> {
  const seen = new Set<string>();
  const repeated = new Set<number>();
  for (const [index, item] of items.entries()) {
    const text = canonicalJson(item);
    if (seen.has(text)) repeated.add(index);
    else seen.add(text);
  }
  return repeated;
}

/** Whether each of these items equals one of the others. */
export function containsAll(others: readonly unknown[], items: readonly unknown[]): boolean {
  if (items.every((item, index) => deepEqual(item, others[index]))) return true;
  const texts = new Set(others.map(canonicalJson));
  return items.every((item) => texts.has(canonicalJson(item)));
}
