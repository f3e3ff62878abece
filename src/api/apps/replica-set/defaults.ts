import { setTemplateDefaults, specOf } from "../workload/strategy.ts";
import type { ReplicaSet } from "./schema.ts";

export function setReplicaSetDefaults(object: ReplicaSet): ReplicaSet {
  const spec = specOf(object);
  return { ...object, spec: { ...spec, replicas: spec.replicas ?? 1, template: setTemplateDefaults(spec.template) } };
}
