/** The errors for a patched object that does not decode, as Kubernetes' decoders report them. */

import { stringifyExact } from "../../schema/json/exact-numbers.ts";
import { formatGoValue } from "../../schema/value/format-go-value.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import type { Patch } from "./apply-patch.ts";

export interface DecodeFailure {
  /** The value in the error. */
  readonly text: string;
  readonly detail: string;
}

/**
 * For JSON and merge patches the error shows the patched JSON: objects on the path of the patch have sorted members,
 * others the stored order. For strategic patches it shows the patch in Go's format. `message` is the decoder's.
 */
export function describeDecodeFailure(patch: Patch, before: unknown, after: unknown, message: string): DecodeFailure {
  switch (patch.type) {
    case "json": {
      const paths = patch.operations.flatMap(({ path, from }) =>
        [path, from].filter((text): text is string => typeof text === "string"),
      );
      return { text: stringifyExact(sortAlongPaths(after, parentTree(paths))), detail: message };
    }
    case "merge":
      return { text: stringifyExact(sortMergedObjects(after, patch.value, before)), detail: message };
    case "strategic":
      return { text: formatGoValue(dropNewNulls(patch.value, before)), detail: message };
    case "malformed":
      return { text: "", detail: message };
    default:
      return patch satisfies never;
  }
}

/** The objects on the paths of a patch, by their member or index. */
interface PathTree {
  [step: string]: PathTree;
}

/** Builds the tree of the paths' parents. */
function parentTree(paths: readonly string[]): PathTree {
  const root: PathTree = Object.create(null);
  for (const path of paths) {
    let node = root;
    for (const step of path.split("/").slice(1, -1)) {
      const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
      const below = node[name] ?? Object.create(null);
      node[name] = below;
      node = below;
    }
  }
  return root;
}

function sortAlongPaths(value: unknown, paths: PathTree): unknown {
  const member = (name: string, child: unknown): unknown => {
    const below = paths[name];
    return below === undefined ? child : sortAlongPaths(child, below);
  };
  if (Array.isArray(value)) return value.map((item, i) => member(String(i), item));
  return isPlainObject(value) ? sortMembers(value, member) : value;
}

function sortMergedObjects(after: unknown, patch: unknown, before: unknown): unknown {
  if (Array.isArray(after) && before === undefined) {
    return after.map((item) => sortMergedObjects(item, item, undefined));
  }
  if (!isPlainObject(after) || !isPlainObject(patch)) return after;
  const old = isPlainObject(before) ? before : {};
  return sortMembers(after, (name, child) => {
    return Object.hasOwn(patch, name) ? sortMergedObjects(child, patch[name], old[name]) : child;
  });
}

function sortMembers(
  value: Readonly<Record<string, unknown>>,
  member: (name: string, child: unknown) => unknown,
): Readonly<Record<string, unknown>> {
  const names = Object.keys(value).sort();
  return Object.fromEntries(names.map((name) => [name, member(name, value[name])]));
}

/** Removes nulls that delete nothing. */
function dropNewNulls(patch: unknown, before: unknown): unknown {
  if (!isPlainObject(patch)) return patch;
  const old = isPlainObject(before) ? before : undefined;
  const kept = Object.entries(patch).filter(([, value]) => value !== null || old !== undefined);
  return Object.fromEntries(kept.map(([name, value]) => [name, dropNewNulls(value, old?.[name])]));
}
