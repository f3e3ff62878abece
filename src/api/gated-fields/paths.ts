/** Reads and removes fields by paths such as `spec.containers[].lifecycle.stopSignal`. */

interface Step {
  readonly name: string;
  /** The field is a list: the rest of the path applies to each item. */
  readonly isList: boolean;
}

export type FieldPath = readonly Step[];

type Members = Readonly<Record<string, unknown>>;

export function parseFieldPath(text: string): FieldPath {
  return text.split(".").map((part) => {
    const isList = part.endsWith("[]");
    return { name: isList ? part.slice(0, -2) : part, isList };
  });
}

/** Whether the field is set at one of the places that the path leads to; `emptyText` is whether a text may be empty. */
export function hasField(value: unknown, path: FieldPath, emptyText = false, from = 0): boolean {
  const step = path[from];
  if (step === undefined) return isSet(value) || (emptyText && value === "");
  const member = memberOf(value, step.name);
  if (member === undefined || member === null) return false;
  if (!step.isList) return hasField(member, path, emptyText, from + 1);
  return Array.isArray(member) && member.some((item) => hasField(item, path, emptyText, from + 1));
}

/** Empty lists and texts count as absent, as in Go. */
function isSet(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return false;
  return !Array.isArray(value) || value.length > 0;
}

/**
 * Replaces the field at all places that the path leads to; `replace` returns undefined to remove it. With `prunes`,
 * parents that become empty are removed as well, but no list items. Returns `value` itself when nothing changes.
 */
export function replaceField(
  value: unknown,
  path: FieldPath,
  replace: (found: unknown) => unknown,
  prunes: boolean,
  from = 0,
): unknown {
  const step = path[from];
  if (step === undefined) return replace(value);
  const member = memberOf(value, step.name);
  if (member === undefined || member === null) return value;
  const next = step.isList
    ? replaceInList(member, path, replace, prunes, from + 1)
    : replaceField(member, path, replace, prunes, from + 1);
  if (next === member) return value;
  const { [step.name]: _, ...others } = value as Members;
  const isEmpty = next === undefined || (prunes && isEmptyObject(next));
  return isEmpty ? others : { ...others, [step.name]: next };
}

function replaceInList(
  list: unknown,
  path: FieldPath,
  replace: (found: unknown) => unknown,
  prunes: boolean,
  from: number,
): unknown {
  if (!Array.isArray(list)) return list;
  const items: readonly unknown[] = list;
  const next = items.map((item) => replaceField(item, path, replace, prunes, from));
  return next.every((item, i) => item === items[i]) ? list : next;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Members)[name] : undefined;
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
}

/** The values that the path leads to, with their paths: `spec.containers[1].name`. */
export function* listFields(
  value: unknown,
  path: FieldPath,
  at = "",
  from = 0,
): Generator<readonly [at: string, value: unknown]> {
  const step = path[from];
  if (step === undefined) {
    if (value !== undefined && value !== null) yield [at, value];
    return;
  }
  const member = memberOf(value, step.name);
  const here = at === "" ? step.name : `${at}.${step.name}`;
  if (!step.isList) yield* listFields(member, path, here, from + 1);
  else if (Array.isArray(member)) {
    for (const [i, item] of member.entries()) yield* listFields(item, path, `${here}[${i}]`, from + 1);
  }
}
