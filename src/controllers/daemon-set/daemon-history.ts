/** The revisions of a daemon set. */
import { controllerRevisionKind } from "../../api/apps/controller-revision/kind.ts";
import type { ControllerRevision } from "../../api/apps/controller-revision/schema.ts";
import { daemonSetKind } from "../../api/apps/daemon-set/kind.ts";
import type { DaemonSet } from "../../api/apps/daemon-set/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Client } from "../../client/client.ts";
import { isAlreadyExists, statusCodeOf } from "../api-errors.ts";
import { compareRevisions, matchesTemplate, revisionData } from "../workload/controller-history.ts";
import { controllerReference } from "../workload/object-keys.ts";
import { computeHash } from "../workload/pod-template-hash.ts";
import { REVISION_HASH } from "./daemon-pods.ts";

export interface DaemonHistory {
  readonly current: ControllerRevision;
  readonly old: readonly ControllerRevision[];
}

export interface HistoryContext {
  readonly client: Client;
  readonly daemonSet: DaemonSet;
  readonly signal: AbortSignal;
}

/**
 * Creates the revision of the current template, or gives it the highest number. Undefined after a merge of revisions:
 * the informers lag behind the labels of pods, whose change starts the next sync.
 */
export async function constructHistory(
  context: HistoryContext,
  claimed: readonly ControllerRevision[],
  podsOf: () => Promise<readonly Pod[]>,
): Promise<DaemonHistory | undefined> {
  const { client, daemonSet, signal } = context;
  const template = daemonSet.spec?.template ?? {};
  const labelled = await Promise.all(claimed.map((revision) => addHashLabel(context, revision)));
  const matching = labelled.filter((revision) => matchesTemplate(revision, template)).sort(compareRevisions);
  const old = labelled.filter((revision) => !matching.includes(revision));
  const next = Math.max(0, ...old.map(({ revision }) => Number(revision))) + 1;
  const found = matching.at(-1);
  if (found === undefined) return { current: await createRevision(context, next), old };
  if (matching.length > 1) {
    await mergeRevisions(context, found, matching.slice(0, -1), await podsOf());
    return undefined;
  }
  if (Number(found.revision) >= next) return { current: found, old };
  const current = await client.update(controllerRevisionKind, { ...found, revision: next }, signal);
  return { current, old };
}

/** Revisions of very old versions have no label. */
async function addHashLabel(
  { client, signal }: HistoryContext,
  revision: ControllerRevision,
): Promise<ControllerRevision> {
  const { name = "", labels } = revision.metadata ?? {};
  if (labels?.[REVISION_HASH] !== undefined) return revision;
  const metadata = { ...revision.metadata, labels: { ...labels, [REVISION_HASH]: name } };
  return await client.update(controllerRevisionKind, { ...revision, metadata }, signal);
}

/** After a collision of names several revisions may have the same template: their pods get the label of the last. */
async function mergeRevisions(
  { client, signal }: HistoryContext,
  kept: ControllerRevision,
  duplicates: readonly ControllerRevision[],
  pods: readonly Pod[],
): Promise<void> {
  const hash = hashOf(kept);
  for (const { metadata } of pods) {
    if (metadata?.labels?.[REVISION_HASH] === hash) continue;
    const { name = "", namespace } = metadata ?? {};
    const patch = { metadata: { labels: { [REVISION_HASH]: hash } } };
    await client.patch(podKind, { name, namespace }, "merge", patch, { signal });
  }
  for (const revision of duplicates) await deleteRevision(client, revision, signal);
}

export function hashOf({ metadata }: ControllerRevision): string {
  return metadata?.labels?.[REVISION_HASH] ?? "";
}

async function createRevision(context: HistoryContext, revision: number): Promise<ControllerRevision> {
  const { client, daemonSet, signal } = context;
  const { name: owner, namespace, annotations } = daemonSet.metadata ?? {};
  const template = daemonSet.spec?.template ?? {};
  const hash = computeHash(template, daemonSet.status?.collisionCount);
  const name = `${owner}-${hash}`;
  try {
    return await client.create(
      controllerRevisionKind,
      {
        metadata: {
          name,
          namespace,
          annotations,
          labels: { ...template.metadata?.labels, [REVISION_HASH]: hash },
          ownerReferences: [controllerReference(daemonSet)],
        },
        data: revisionData(template),
        revision,
      },
      signal,
    );
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const existing = await client.get(controllerRevisionKind, { name, namespace }, signal);
    if (matchesTemplate(existing, template)) return existing;
    await countCollision(context);
    throw error;
  }
}

/** The next sync computes another hash from the count. */
async function countCollision({ client, daemonSet, signal }: HistoryContext): Promise<void> {
  const { name = "", namespace } = daemonSet.metadata ?? {};
  const fresh = await client.get(daemonSetKind, { name, namespace }, signal);
  const { collisionCount } = fresh.status ?? {};
  if (collisionCount !== daemonSet.status?.collisionCount) {
    throw new Error(
      `found a stale collision count (${daemonSet.status?.collisionCount}, expected ${collisionCount}) of ` +
        `DaemonSet ${JSON.stringify(name)} while processing; will retry until it is updated`,
    );
  }
  const status = { ...emptyStatus, ...fresh.status, collisionCount: (collisionCount ?? 0) + 1 };
  await client.updateStatus(daemonSetKind, { ...fresh, status }, signal);
}

export const emptyStatus = {
  currentNumberScheduled: 0,
  numberMisscheduled: 0,
  desiredNumberScheduled: 0,
  numberReady: 0,
};

/** Deletes the lowest revisions above the limit; those of existing pods stay. */
export async function cleanUpHistory(
  { client, daemonSet, signal }: HistoryContext,
  old: readonly ControllerRevision[],
  pods: readonly Pod[],
): Promise<void> {
  const surplus = old.length - (daemonSet.spec?.revisionHistoryLimit ?? 10);
  if (surplus <= 0) return;
  const live = new Set(pods.map(({ metadata }) => metadata?.labels?.[REVISION_HASH]));
  const deletable = [...old].sort(compareRevisions).filter((revision) => !live.has(hashOf(revision)));
  for (const revision of deletable.slice(0, surplus)) await deleteRevision(client, revision, signal);
}

async function deleteRevision(client: Client, { metadata }: ControllerRevision, signal: AbortSignal): Promise<void> {
  const { name = "", namespace } = metadata ?? {};
  await client.delete(controllerRevisionKind, { name, namespace }, {}, signal).catch((error: unknown) => {
    if (statusCodeOf(error) !== 404) throw error;
  });
}
