import { setTemplateDefaults, specOf } from "../../apps/workload/strategy.ts";
import type { ReplicationController } from "./schema.ts";

type Labels = Readonly<Record<string, string>>;

export const isEmpty = (labels: Labels | undefined): boolean => Object.keys(labels ?? {}).length === 0;

/** The template's labels are the default of the selector and of the controller's labels. */
export function setReplicationControllerDefaults(object: ReplicationController): ReplicationController {
  const spec = specOf(object);
  const labels = spec.template?.metadata?.labels;
  const named = labels === undefined || !isEmpty(object.metadata?.labels);
  const selected = labels === undefined || !isEmpty(spec.selector);
  return {
    ...object,
    ...(named ? {} : { metadata: { ...object.metadata, labels } }),
    spec: {
      ...spec,
      replicas: spec.replicas ?? 1,
      ...(selected ? {} : { selector: labels }),
      ...(spec.template === undefined ? {} : { template: setTemplateDefaults(spec.template) }),
    },
  };
}
