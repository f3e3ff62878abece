/** Revisions of a deployment: its replica sets, their annotations and templates. */
import type { Deployment } from "../../api/apps/deployment/schema.ts";
import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import { type PodTemplateSpec, podTemplateSpec } from "../../api/core/pod-template/schema.ts";
import { semanticEqual } from "../../schema/semantic-equal.ts";
import { parseSigned } from "../../schema/value/int64.ts";
import { compareCreation } from "../workload/object-keys.ts";
import { DESIRED_REPLICAS, MAX_REPLICAS, maxSurge, replicasOf } from "./deployment-numbers.ts";

export const TEMPLATE_HASH = "pod-template-hash";
export const REVISION = "deployment.kubernetes.io/revision";
const REVISION_HISTORY = "deployment.kubernetes.io/revision-history";
export const ROLLBACK_TO = "deprecated.deployment.rollback.to";
const HISTORY_CHARS_MAX = 2000;
/** Annotations of a deployment that its replica sets do not get. */
const NOT_COPIED: ReadonlySet<string> = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  REVISION,
  REVISION_HISTORY,
  DESIRED_REPLICAS,
  MAX_REPLICAS,
  ROLLBACK_TO,
]);

type Annotations = Readonly<Record<string, string>>;

/** The oldest replica set with the deployment's template. */
export function findNewReplicaSet(deployment: Deployment, sets: readonly ReplicaSet[]): ReplicaSet | undefined {
  return [...sets].sort(compareCreation).find(({ spec }) => hasSameTemplate(deployment, spec?.template));
}

export function hasSameTemplate({ spec }: Deployment, template: PodTemplateSpec | undefined): boolean {
  return semanticEqual(podTemplateSpec, withoutHash(spec?.template), withoutHash(template));
}

export function withoutHash(template: PodTemplateSpec = {}): PodTemplateSpec {
  const { [TEMPLATE_HASH]: _hash, ...labels } = template.metadata?.labels ?? {};
  return { ...template, metadata: { ...template.metadata, labels } };
}

/** A 64-bit integer; 0 without a valid annotation. */
export function revisionOf({ metadata }: ReplicaSet): bigint {
  return parseSigned(metadata?.annotations?.[REVISION] ?? "", 64) ?? 0n;
}

/** One more than the largest; the largest 64-bit integer is followed by the smallest, as in Kubernetes. */
export function nextRevision(old: readonly ReplicaSet[]): bigint {
  let largest = 0n;
  for (const set of old) if (revisionOf(set) > largest) largest = revisionOf(set);
  return BigInt.asIntN(64, largest + 1n);
}

/** The annotations of the new replica set: the deployment's, its revision and the previous ones that it had. */
export function revisionAnnotations(deployment: Deployment, existing: Annotations, revision: bigint): Annotations {
  const copied = Object.entries(deployment.metadata?.annotations ?? {}).filter(([name]) => !NOT_COPIED.has(name));
  const annotations = { ...existing, ...Object.fromEntries(copied) };
  const previous = annotations[REVISION];
  const previousRevision = parseSigned(previous || "0", 64);
  if (previousRevision === undefined || previousRevision >= revision) return annotations;
  const history = previous === undefined ? {} : appendHistory(annotations[REVISION_HISTORY], previous);
  return { ...annotations, ...history, [REVISION]: String(revision) };
}

/** The annotations of a deployment that is rolled back: those that replica sets get come from the replica set. */
export function rollbackAnnotations(annotations: Annotations, { metadata }: ReplicaSet): Annotations {
  const own = Object.entries(annotations).filter(([name]) => NOT_COPIED.has(name));
  const copied = Object.entries(metadata?.annotations ?? {}).filter(([name]) => !NOT_COPIED.has(name));
  return Object.fromEntries([...own, ...copied]);
}

/** Drops the oldest revisions when the text gets too long. */
function appendHistory(history = "", revision: string): Annotations {
  if (history === "" || history.startsWith(",")) return { [REVISION_HISTORY]: revision };
  const revisions = [...history.split(","), revision];
  while (revisions.join(",").length > HISTORY_CHARS_MAX && revisions.length > 1) revisions.shift();
  return { [REVISION_HISTORY]: revisions.join(",") };
}

export function replicaAnnotations(deployment: Deployment): Annotations {
  const replicas = replicasOf(deployment);
  return { [DESIRED_REPLICAS]: String(replicas), [MAX_REPLICAS]: String(replicas + maxSurge(deployment)) };
}
