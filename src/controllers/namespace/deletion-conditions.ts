/** What a namespace says of its own deletion, in Kubernetes' words: tools, and people, look for them. */
import type { Namespace } from "../../api/core/namespace/schema.ts";

type Condition = NonNullable<NonNullable<Namespace["status"]>["conditions"]>[number];

export interface Remains {
  /** `deployments.apps`, `pods.` */
  readonly resource: string;
  readonly count: number;
  /** How many of them have it. */
  readonly finalizers: ReadonlyMap<string, number>;
}

export interface Progress {
  readonly remains: readonly Remains[];
  /** Of resources whose content could not be listed or deleted. */
  readonly failures: readonly string[];
  /** Why not all resources are known. */
  readonly discovery?: string | undefined;
}

interface Ok {
  readonly type: Condition["type"];
  readonly reason: string;
  readonly message: string;
}

const fine = {
  discovery: {
    type: "NamespaceDeletionDiscoveryFailure",
    reason: "ResourcesDiscovered",
    message: "All resources successfully discovered",
  },
  // What is served here always parses.
  parsing: {
    type: "NamespaceDeletionGroupVersionParsingFailure",
    reason: "ParsedGroupVersions",
    message: "All legacy kube types successfully parsed",
  },
  deletion: {
    type: "NamespaceDeletionContentFailure",
    reason: "ContentDeleted",
    message: "All content successfully deleted, may be waiting on finalization",
  },
  content: {
    type: "NamespaceContentRemaining",
    reason: "ContentRemoved",
    message: "All content successfully removed",
  },
  finalizers: {
    type: "NamespaceFinalizersRemaining",
    reason: "ContentHasNoFinalizers",
    message: "All content-preserving finalizers finished",
  },
} as const satisfies Readonly<Record<string, Ok>>;

/** Undefined when they say this already. A time changes with its status only. */
export function conditionsAfter(
  before: readonly Condition[],
  { remains, failures, discovery }: Progress,
  now: string,
): readonly Condition[] | undefined {
  const count = failures.length;
  const told = [
    judge(fine.discovery, discovery === undefined ? [] : [discovery], "DiscoveryFailed", (list) => list),
    judge(fine.parsing, [], "GroupVersionParsingFailed", (list) => list),
    judge(
      fine.deletion,
      failures,
      "ContentDeletionFailed",
      (list) => `Failed to delete all resource types, ${count} remaining: ${list}`,
    ),
    judge(
      fine.content,
      remains.map((left) => `${left.resource} has ${left.count} resource instances`),
      "SomeResourcesRemain",
      (list) => `Some resources are remaining: ${list}`,
    ),
    judge(
      fine.finalizers,
      [...finalizersOf(remains)].map(([name, instances]) => `${name} in ${instances} resource instances`),
      "SomeFinalizersRemain",
      (list) => `Some content in the namespace has finalizers remaining: ${list}`,
    ),
  ];
  let isNew = false;
  const after = told.map((condition): Condition => {
    const known = before.find(({ type }) => type === condition.type);
    const { status, reason, message } = condition;
    if (known?.status === status && known.reason === reason && known.message === message) return known;
    isNew = true;
    const lastTransitionTime = known?.status === status ? (known.lastTransitionTime ?? now) : now;
    return { ...condition, lastTransitionTime };
  });
  return isNew ? after : undefined;
}

function judge(
  { type, reason, message }: Ok,
  problems: readonly string[],
  problem: string,
  sentence: (list: string) => string,
): Condition {
  if (problems.length === 0) return { type, status: "False", reason, message };
  return { type, status: "True", reason: problem, message: sentence([...problems].sort().join(", ")) };
}

function finalizersOf(remains: readonly Remains[]): ReadonlyMap<string, number> {
  const all = new Map<string, number>();
  for (const { finalizers } of remains) {
    for (const [name, count] of finalizers) all.set(name, (all.get(name) ?? 0) + count);
  }
  return all;
}
