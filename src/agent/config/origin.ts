/** A configuration value with the source of each leaf. */
import { child, key } from "../../schema/value/field-path.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";

export type Source =
  | { readonly kind: "default" }
  | { readonly kind: "file" | "drop-in"; readonly file: string; readonly line: number | undefined }
  | { readonly kind: "flag"; readonly flag: string };

/** Scalars and lists are leaves, since a later file replaces them as one; objects and maps merge member by member. */
export type Origin = Leaf | Branch;

export interface Leaf {
  readonly kind: "leaf";
  readonly value: unknown;
  readonly source: Source;
}

export interface Branch {
  readonly kind: "branch";
  readonly members: ReadonlyMap<string, Origin>;
}

export type Steps = readonly string[];

export const emptyBranch: Branch = { kind: "branch", members: new Map() };

/** Builds the tree of `value`, without members that are null. */
export function toOrigins(value: unknown, sourceOf: (steps: Steps) => Source, steps: Steps = []): Origin {
  if (!isPlainObject(value)) return { kind: "leaf", value, source: sourceOf(steps) };
  const members = Object.entries(value)
    .filter(([, member]) => member !== null && member !== undefined)
    .map(([name, member]) => [name, toOrigins(member, sourceOf, [...steps, name])] as const);
  return { kind: "branch", members: new Map(members) };
}

/** Merges two trees; `over` wins leaf by leaf. */
export function mergeOrigins(base: Origin | undefined, over: Origin): Origin {
  if (base?.kind !== "branch" || over.kind !== "branch") return over;
  const members = new Map(base.members);
  for (const [name, member] of over.members) members.set(name, mergeOrigins(members.get(name), member));
  return { kind: "branch", members };
}

export function findOrigin(root: Origin, steps: Steps): Origin | undefined {
  let node: Origin | undefined = root;
  for (const step of steps) node = node?.kind === "branch" ? node.members.get(step) : undefined;
  return node;
}

/** A copy of `root` with `node` at `steps`; undefined removes the node. */
export function withOrigin(root: Branch, steps: Steps, node: Origin | undefined): Branch {
  const [step, ...rest] = steps;
  if (step === undefined) return root;
  const members = new Map(root.members);
  const old = members.get(step);
  const next = rest.length === 0 ? node : withOrigin(old?.kind === "branch" ? old : emptyBranch, rest, node);
  if (next === undefined) members.delete(step);
  else members.set(step, next);
  return { kind: "branch", members };
}

/** The plain value of a tree. */
export function toPlainValue(node: Origin): unknown {
  if (node.kind === "leaf") return node.value;
  return Object.fromEntries([...node.members].map(([name, member]) => [name, toPlainValue(member)]));
}

export function* listLeaves(node: Origin, steps: Steps = []): Generator<readonly [Steps, Leaf]> {
  if (node.kind === "leaf") yield [steps, node];
  else for (const [name, member] of node.members) yield* listLeaves(member, [...steps, name]);
}

/** `authentication.webhook.enabled`, `evictionHard[memory.available]` */
export function formatPath(steps: Steps): string {
  return steps.reduce((path, step) => (/^\w+$/.test(step) ? child(path, step) : key(path, step)), "");
}

/** `default`, `/etc/svc/agent.yaml:7`, `drop-in /etc/svc/agent.d/10.conf:3`, `flag --max-pods` */
export function formatSource(source: Source): string {
  switch (source.kind) {
    case "default":
      return "default";
    case "flag":
      return `flag --${source.flag}`;
    case "file":
      return formatLocation(source.file, source.line);
    case "drop-in":
      return `drop-in ${formatLocation(source.file, source.line)}`;
    default:
      return source satisfies never;
  }
}

export function formatLocation(file: string, line: number | undefined): string {
  return line === undefined ? file : `${file}:${line}`;
}
