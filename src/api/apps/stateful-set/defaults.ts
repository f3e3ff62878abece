import { defaultFeatures } from "../../../flags/gate-tables/default-features.ts";
import type { FeatureLookup } from "../../../flags/gates.ts";
import { setPersistentVolumeClaimDefaults } from "../../core/persistent-volume-claim/defaults.ts";
import type { PersistentVolumeClaim } from "../../core/persistent-volume-claim/schema.ts";
import type { PodSpec } from "../../core/pod-spec/schema.ts";
import type { PodTemplateSpec } from "../../core/pod-template/schema.ts";
import { setTemplateDefaults, specOf } from "../workload/strategy.ts";
import type { StatefulSet, StatefulSetUpdateStrategy } from "./schema.ts";

export function setStatefulSetDefaults(object: StatefulSet, features: FeatureLookup = defaultFeatures): StatefulSet {
  const spec = specOf(object);
  const { whenDeleted, whenScaled } = spec.persistentVolumeClaimRetentionPolicy ?? {};
  return {
    ...object,
    spec: {
      ...spec,
      ...(spec.volumeClaimTemplates === undefined
        ? {}
        : {
            volumeClaimTemplates: spec.volumeClaimTemplates.map(setPersistentVolumeClaimDefaults).map(setClaimTypeMeta),
          }),
      replicas: spec.replicas ?? 1,
      template: dropEmptyContainers(setTemplateDefaults(spec.template)),
      podManagementPolicy: spec.podManagementPolicy || "OrderedReady",
      updateStrategy: setUpdateStrategyDefaults(
        spec.updateStrategy ?? {},
        features.has("MaxUnavailableStatefulSet") ? { maxUnavailable: 1 } : {},
      ),
      revisionHistoryLimit: spec.revisionHistoryLimit ?? 10,
      persistentVolumeClaimRetentionPolicy: {
        whenDeleted: whenDeleted || "Retain",
        whenScaled: whenScaled || "Retain",
      },
    },
  };
}

/** Claim templates have kind and apiVersion. */
export function setClaimTypeMeta(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  return { ...claim, kind: "PersistentVolumeClaim", apiVersion: "v1" };
}

/** A type without rollingUpdate gets no partition. */
function setUpdateStrategyDefaults(
  strategy: StatefulSetUpdateStrategy,
  gated: Pick<NonNullable<StatefulSetUpdateStrategy["rollingUpdate"]>, "maxUnavailable">,
): StatefulSetUpdateStrategy {
  const { type, rollingUpdate = type ? undefined : {} } = strategy;
  if ((type || "RollingUpdate") !== "RollingUpdate") return strategy;
  if (rollingUpdate === undefined) return { ...strategy, type: "RollingUpdate" };
  const { partition = 0 } = rollingUpdate;
  return { type: "RollingUpdate", rollingUpdate: { ...gated, ...rollingUpdate, partition } };
}

/** Drops an empty list of containers: pod templates are not validated, and Go writes null for an absent list. */
export function dropEmptyContainers(template: PodTemplateSpec): PodTemplateSpec {
  if (template.spec?.containers?.length !== 0) return template;
  const { containers: _, ...spec } = template.spec;
  return { ...template, spec: spec as PodSpec };
}
