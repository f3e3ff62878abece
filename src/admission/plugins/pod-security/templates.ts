/** Finds the pod template of workload kinds. */
import { daemonSetKind } from "../../../api/apps/daemon-set/kind.ts";
import { deploymentKind } from "../../../api/apps/deployment/kind.ts";
import { replicaSetKind } from "../../../api/apps/replica-set/kind.ts";
import { statefulSetKind } from "../../../api/apps/stateful-set/kind.ts";
import { cronJobKind } from "../../../api/batch/cron-job/kind.ts";
import { jobKind } from "../../../api/batch/job/kind.ts";
import { podTemplateKind } from "../../../api/core/pod-template/kind.ts";
import type { PodTemplateSpec } from "../../../api/core/pod-template/schema.ts";
import { replicationControllerKind } from "../../../api/core/replication-controller/kind.ts";
import type { ApiObject, Kind } from "../../../api/kind.ts";

interface Templated {
  readonly template?: PodTemplateSpec | undefined;
  readonly jobTemplate?: { readonly spec?: Templated | undefined } | undefined;
}

const KINDS = [
  daemonSetKind,
  deploymentKind,
  replicaSetKind,
  statefulSetKind,
  jobKind,
  cronJobKind,
  podTemplateKind,
  replicationControllerKind,
] as readonly unknown[] as readonly Kind[];

export function hasTemplate({ group, plural }: Kind): boolean {
  return KINDS.some((kind) => kind.group === group && kind.plural === plural);
}

/** Undefined if the object has no template. */
export function templateOf(object: ApiObject): PodTemplateSpec | undefined {
  const { spec, template } = object as { readonly spec?: Templated } & Templated;
  return template ?? spec?.template ?? spec?.jobTemplate?.spec?.template;
}
