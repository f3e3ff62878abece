import { persistentVolumeClaimSpecWarnings } from "../../core/persistent-volume-claim/warnings.ts";
import { templateWarnings } from "../workload/strategy.ts";
import type { StatefulSet } from "./schema.ts";

const NEGATIVE_LIMIT =
  "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";

export function statefulSetWarnings(object: StatefulSet, previous: StatefulSet | undefined): readonly string[] {
  const { template, volumeClaimTemplates = [], revisionHistoryLimit = 0 } = object.spec ?? {};
  return [
    ...templateWarnings(object, previous, template, "spec.template"),
    ...volumeClaimTemplates.flatMap((claim, i) =>
      persistentVolumeClaimSpecWarnings(claim.spec ?? {}, `spec.volumeClaimTemplates[${i}]`),
    ),
    ...(revisionHistoryLimit < 0 ? [NEGATIVE_LIMIT] : []),
  ];
}
