/** The rollback that the annotation of the field `rollbackTo` of former API versions requests. */
import type { Deployment } from "../../api/apps/deployment/schema.ts";
import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import { parseSigned } from "../../schema/value/int64.ts";
import type { DeploymentSync } from "./deployment-sync.ts";
import { hasSameTemplate, ROLLBACK_TO, revisionOf, rollbackAnnotations, withoutHash } from "./revisions.ts";

/** The requested revision; 0 for the one before the current one. Undefined without a valid request. */
export function rollbackRevision({ metadata }: Deployment): bigint | undefined {
  return parseSigned(metadata?.annotations?.[ROLLBACK_TO] ?? "", 64);
}

/** Restores the template of the revision, and removes the annotation in any case: a rollback happens once. */
export async function rollBack(sync: DeploymentSync, sets: readonly ReplicaSet[], requested: bigint): Promise<void> {
  const { current, old } = await sync.syncRevisions(sets, true);
  const all = current === undefined ? old : [...old, current];
  const revision = requested === 0n ? lastRevision(all) : requested;
  const found = revision === 0n ? undefined : all.find((set) => revisionOf(set) === revision);
  const { deployment } = sync;
  const { name, annotations } = deployment.metadata ?? {};
  const { [ROLLBACK_TO]: _, ...kept } = annotations ?? {};
  const spec = deployment.spec;
  if (found === undefined || spec === undefined) {
    const message = revision === 0n ? "Unable to find last revision." : "Unable to find the revision to rollback to.";
    sync.record("Warning", "DeploymentRollbackRevisionNotFound", message);
    await sync.update({ ...deployment, metadata: { ...deployment.metadata, annotations: kept } });
  } else if (hasSameTemplate(deployment, found.spec?.template)) {
    const message = `The rollback revision contains the same template as current deployment "${name}"`;
    sync.record("Warning", "DeploymentRollbackTemplateUnchanged", message);
    await sync.update({ ...deployment, metadata: { ...deployment.metadata, annotations: kept } });
  } else {
    await sync.update({
      ...deployment,
      metadata: { ...deployment.metadata, annotations: rollbackAnnotations(kept, found) },
      spec: { ...spec, template: withoutHash(found.spec?.template) },
    });
    sync.record("Normal", "DeploymentRollback", `Rolled back deployment "${name}" to revision ${revision}`);
  }
}

/** The second highest revision; 0 without one. */
function lastRevision(sets: readonly ReplicaSet[]): bigint {
  let [highest, second] = [0n, 0n];
  for (const revision of sets.map(revisionOf)) {
    if (revision >= highest) [highest, second] = [revision, highest];
    else if (revision > second) second = revision;
  }
  return second;
}
