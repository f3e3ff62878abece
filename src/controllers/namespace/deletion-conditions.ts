/** The deletion conditions of a namespace, with Kubernetes' reasons and messages. */
import type { Namespace } from "../../api/core/namespace/schema.ts";

type Condition = NonNullable<NonNullable<Namespace["status"]>["conditions"]>[number];

export interface RemainingResources {
  /** `deployments.apps`, `pods.` */
  readonly resource: string;
  readonly count: number;
  /** The number of these objects by finalizer. */
  readonly finalizers: ReadonlyMap<string, number>;
}

export interface DeletionProgress {
  readonly remains: readonly RemainingResources[];
  /** Messages about resources that could not be listed or deleted. */
  readonly failures: readonly string[];
  /** Why the list of resources is incomplete. */
  readonly discovery?: string | undefined;
}

interface SuccessCondition {
  readonly type: Condition["type"];
  readonly reason: string;
  readonly message: string;
}

const success = {
  discovery: {
    type: "NamespaceDeletionDiscoveryFailure",
    reason: "ResourcesDiscovered",
    message: "All resources successfully discovered",
  },
  // Cannot fail, since all served group versions are valid.
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
} as const satisfies Readonly<Record<string, SuccessCondition>>;

/** Undefined if the conditions are up to date. lastTransitionTime changes only with the status. */
export function updateConditions(
  before: readonly Condition[],
  { remains, failures, discovery }: DeletionProgress,
  now: string,
): readonly Condition[] | undefined {
  const count = failures.length;
  const conditions = [
    createCondition(success.discovery, discovery === undefined ? [] : [discovery], "DiscoveryFailed", (list) => list),
    createCondition(success.parsing, [], "GroupVersionParsingFailed", (list) => list),
    createCondition(
      success.deletion,
      failures,
      "ContentDeletionFailed",
      (list) => `Failed to delete all resource types, ${count} remaining: ${list}`,
    ),
    createCondition(
      success.content,
      remains.map((left) => `${left.resource} has ${left.count} resource instances`),
      "SomeResourcesRemain",
      (list) => `Some resources are remaining: ${list}`,
    ),
    createCondition(
      success.finalizers,
      [...sumFinalizers(remains)].map(([name, instances]) => `${name} in ${instances} resource instances`),
      "SomeFinalizersRemain",
      (list) => `Some content in the namespace has finalizers remaining: ${list}`,
    ),
  ];
  let isNew = false;
  const after = conditions.map((condition): Condition => {
    const existing = before.find(({ type }) => type === condition.type);
    const { status, reason, message } = condition;
    if (existing?.status === status && existing.reason === reason && existing.message === message) return existing;
    isNew = true;
    const lastTransitionTime = existing?.status === status ? (existing.lastTransitionTime ?? now) : now;
    return { ...condition, lastTransitionTime };
  });
  return isNew ? after : undefined;
}

function createCondition(
  { type, reason, message }: SuccessCondition,
  problems: readonly string[],
  failureReason: string,
  formatMessage: (list: string) => string,
): Condition {
  if (problems.length === 0) return { type, status: "False", reason, message };
  return { type, status: "True", reason: failureReason, message: formatMessage([...problems].sort().join(", ")) };
}

function sumFinalizers(remains: readonly RemainingResources[]): ReadonlyMap<string, number> {
  const all = new Map<string, number>();
  for (const { finalizers } of remains) {
    for (const [name, count] of finalizers) all.set(name, (all.get(name) ?? 0) + count);
  }
  return all;
}
