/** The revisions of a stateful set. */
import { controllerRevisionKind } from "../../api/apps/controller-revision/kind.ts";
import type { ControllerRevision } from "../../api/apps/controller-revision/schema.ts";
import type { StatefulSet } from "../../api/apps/stateful-set/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Client } from "../../client/client.ts";
import { isAlreadyExists, statusCodeOf } from "../api-errors.ts";
import {
  compareRevisions,
  hashTemplate,
  matchesTemplate,
  revisionData,
  revisionName,
} from "../workload/controller-history.ts";
import { controllerReference } from "../workload/object-keys.ts";
import { revisionOf } from "./stateful-pods.ts";

const HASH = "controller.kubernetes.io/hash";

export interface SetRevisions {
  /** Of the pods before the update. */
  readonly current: ControllerRevision;
  /** Of the set's template. */
  readonly update: ControllerRevision;
  readonly collisionCount: number;
}

export interface RevisionContext {
  readonly client: Client;
  readonly set: StatefulSet;
  readonly signal: AbortSignal;
}

/** Creates the revision of the template, or gives an earlier one the highest number. */
export async function syncRevisions(
  context: RevisionContext,
  claimed: readonly ControllerRevision[],
): Promise<SetRevisions> {
  const { set } = context;
  const template = set.spec?.template ?? {};
  const sorted = [...claimed].sort(compareRevisions);
  const last = sorted.at(-1);
  const next = Number(last?.revision ?? 0) + 1;
  const equal = sorted.findLast((revision) => matchesTemplate(revision, template));
  let collisionCount = set.status?.collisionCount ?? 0;
  let update: ControllerRevision;
  if (last !== undefined && matchesTemplate(last, template)) update = last;
  else if (equal !== undefined) update = await renumber(context, equal, next);
  else {
    const created = await createRevision(context, next, collisionCount);
    update = created.revision;
    collisionCount = created.collisionCount;
  }
  const current = sorted.find(({ metadata }) => metadata?.name === set.status?.currentRevision) ?? update;
  return { current, update, collisionCount };
}

/** Retries a conflict with the current object. */
async function renumber(
  { client, signal }: RevisionContext,
  revision: ControllerRevision,
  next: number,
): Promise<ControllerRevision> {
  try {
    return await client.update(controllerRevisionKind, { ...revision, revision: next }, signal);
  } catch (error) {
    if (statusCodeOf(error) !== 409) throw error;
    const { name = "", namespace } = revision.metadata ?? {};
    const fresh = await client.get(controllerRevisionKind, { name, namespace }, signal);
    if (Number(fresh.revision) >= next) return fresh;
    return await client.update(controllerRevisionKind, { ...fresh, revision: next }, signal);
  }
}

/** A name that another revision has raises the count of collisions, which changes the hash. */
async function createRevision(
  { client, set, signal }: RevisionContext,
  revision: number,
  collisions: number,
): Promise<{ readonly revision: ControllerRevision; readonly collisionCount: number }> {
  const { name: owner = "", namespace, annotations } = set.metadata ?? {};
  const template = set.spec?.template ?? {};
  const label = hashTemplate(template, collisions);
  for (let collisionCount = collisions; ; collisionCount++) {
    const name = revisionName(owner, hashTemplate(template, collisionCount));
    const metadata = {
      name,
      namespace,
      annotations,
      labels: { ...template.metadata?.labels, [HASH]: label },
      ownerReferences: [controllerReference(set)],
    };
    try {
      const data = revisionData(template);
      const created = await client.create(controllerRevisionKind, { metadata, data, revision }, signal);
      return { revision: created, collisionCount };
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const existing = await client.get(controllerRevisionKind, { name, namespace }, signal);
      if (matchesTemplate(existing, template)) return { revision: existing, collisionCount };
    }
  }
}

/** Deletes the lowest revisions above the limit; those of pods and of the status stay. */
export async function truncateHistory(
  { client, set, signal }: RevisionContext,
  revisions: readonly ControllerRevision[],
  pods: readonly Pod[],
  live: readonly ControllerRevision[],
): Promise<void> {
  const names = new Set([...live.map(({ metadata }) => metadata?.name), ...pods.map(revisionOf)]);
  const history = revisions.filter(({ metadata }) => !names.has(metadata?.name)).sort(compareRevisions);
  const limit = set.spec?.revisionHistoryLimit ?? 10;
  if (limit < 0) return;
  for (const { metadata } of history.slice(0, Math.max(0, history.length - limit))) {
    const { name = "", namespace } = metadata ?? {};
    await client.delete(controllerRevisionKind, { name, namespace }, {}, signal).catch((error: unknown) => {
      if (statusCodeOf(error) !== 404) throw error;
    });
  }
}
