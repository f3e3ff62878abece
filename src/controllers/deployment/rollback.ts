/** The rollback that the annotation of the field `rollbackTo` of former API versions requests. */
import type { Deployment } from "../../api/apps/deployment/schema.ts";
import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import type { DeploymentSync } from "./deployment-sync.ts";
import { hasSameTemplate, ROLLBACK_TO, revisionOf, rollbackAnnotations, withoutHash } from "./revisions.ts";

/** The requested revision; 0 for the one before the current one. Undefined without a valid request. */
export function rollbackRevision({ metadata }: Deployment): number | undefined {
  const text = metadata?.annotations?.[ROLLBACK_TO] ?? "";
  return /^[+-]?\d+$/.test(text) ? Number(text) : undefined;
}

/** Restores the template of the revision, and removes the annotation in any case: a rollback happens once. */
export async function rollBack(sync: DeploymentSync, sets: readonly ReplicaSet[], requested: number): Promise<void> {
  const { current, old } = await sync.syncRevisions(sets, true);
  const all = current === undefined ? old : [...old, current];
  const revision = requested === 0 ? lastRevision(all) : requested;
  const found = revision === 0 ? undefined : all.find((set) => revisionOf(set) === revision);
  const { deployment } = sync;
  const { name, annotations } = deployment.metadata ?? {};
  const { [ROLLBACK_TO]: _, ...kept } = annotations ?? {};
  const spec = deployment.spec;
  if (found === undefined || spec === undefined) {
    const message = revision === 0 ? "Unable to find last revision." : "Unable to find the revision to rollback to.";
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
function lastRevision(sets: readonly ReplicaSet[]): number {
  return sets.map(revisionOf).sort((a, b) => b - a)[1] ?? 0;
}
