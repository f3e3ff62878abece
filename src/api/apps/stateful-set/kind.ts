import { scaleSubresource } from "../../autoscaling/scale/kind.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { setPersistentVolumeClaimDefaults } from "../../core/persistent-volume-claim/defaults.ts";
import type { PersistentVolumeClaim } from "../../core/persistent-volume-claim/schema.ts";
import { persistentVolumeClaimSpecWarnings } from "../../core/persistent-volume-claim/warnings.ts";
import type { PodSpec } from "../../core/pod-spec/schema.ts";
import type { PodTemplateSpec } from "../../core/pod-template/schema.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { dns1123Label } from "../../meta/validation/names.ts";
import { statusSubresource } from "../../strategy.ts";
import { containerColumns } from "../workload/columns.ts";
import {
  createPrepareForUpdate,
  prepareForCreate,
  setTemplateDefaults,
  specOf,
  templateWarnings,
} from "../workload/strategy.ts";
import { type StatefulSet, type StatefulSetUpdateStrategy, statefulSet, statefulSetSpec } from "./schema.ts";
import { validateStatefulSet, validateStatefulSetStatus, validateStatefulSetUpdate } from "./validation.ts";

function setStatefulSetDefaults(object: StatefulSet): StatefulSet {
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
      updateStrategy: setUpdateStrategyDefaults(spec.updateStrategy ?? {}),
      revisionHistoryLimit: spec.revisionHistoryLimit ?? 10,
      persistentVolumeClaimRetentionPolicy: {
        whenDeleted: whenDeleted || "Retain",
        whenScaled: whenScaled || "Retain",
      },
    },
  };
}

/** Templates of claims are whole objects: they say what they are. */
function setClaimTypeMeta(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  return { ...claim, kind: "PersistentVolumeClaim", apiVersion: "v1" };
}

/** The pods of a set may be without containers, as nobody checks them before they are made; Go writes null for none. */
function dropEmptyContainers(template: PodTemplateSpec): PodTemplateSpec {
  if (template.spec?.containers?.length !== 0) return template;
  const { containers: _, ...spec } = template.spec;
  return { ...template, spec: spec as PodSpec };
}

function afterDecode(object: StatefulSet): StatefulSet {
  if (object.spec === undefined) return object;
  const { volumeClaimTemplates: claims, template, ...spec } = object.spec;
  const claimed = claims === undefined ? {} : { volumeClaimTemplates: claims.map(setClaimTypeMeta) };
  return { ...object, spec: { ...spec, ...claimed, template: dropEmptyContainers(template) } };
}

/** Whoever names the type, and no more, gets no partition. */
function setUpdateStrategyDefaults(strategy: StatefulSetUpdateStrategy): StatefulSetUpdateStrategy {
  const { type, rollingUpdate = type ? undefined : {} } = strategy;
  if ((type || "RollingUpdate") !== "RollingUpdate") return strategy;
  if (rollingUpdate === undefined) return { ...strategy, type: "RollingUpdate" };
  return { type: "RollingUpdate", rollingUpdate: { ...rollingUpdate, partition: rollingUpdate.partition ?? 0 } };
}

/** The feature of more than one missing pod is off: its member goes, unless the set had it. */
function dropDisabledFields(next: StatefulSet, previous: StatefulSet | undefined): StatefulSet {
  const rollingUpdate = next.spec?.updateStrategy?.rollingUpdate;
  if (next.spec === undefined || rollingUpdate?.maxUnavailable === undefined) return next;
  if (previous?.spec?.updateStrategy?.rollingUpdate?.maxUnavailable !== undefined) return next;
  const { maxUnavailable: _, ...rest } = rollingUpdate;
  return { ...next, spec: { ...next.spec, updateStrategy: { ...next.spec.updateStrategy, rollingUpdate: rest } } };
}

const NEGATIVE_LIMIT =
  "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";

function statefulSetWarnings(object: StatefulSet, previous: StatefulSet | undefined): readonly string[] {
  const { template, volumeClaimTemplates = [], revisionHistoryLimit = 0 } = object.spec ?? {};
  return [
    ...templateWarnings(object, previous, template, "spec.template"),
    ...volumeClaimTemplates.flatMap((claim, i) =>
      persistentVolumeClaimSpecWarnings(claim.spec ?? {}, `spec.volumeClaimTemplates[${i}]`),
    ),
    ...(revisionHistoryLimit < 0 ? [NEGATIVE_LIMIT] : []),
  ];
}

const countChanges = createPrepareForUpdate<StatefulSet>(statefulSetSpec);

const statefulSetStrategy: Strategy<StatefulSet> = {
  setDefaults: setStatefulSetDefaults,
  prepareForCreate: (object) => prepareForCreate(dropDisabledFields(object, undefined)),
  prepareForUpdate: (next, previous) => countChanges(dropDisabledFields(next, previous), previous),
  validate: validateStatefulSet,
  validateUpdate: validateStatefulSetUpdate,
  warnings: statefulSetWarnings,
  afterDecode: afterDecode,
};

export const statefulSetKind: Kind<StatefulSet> = {
  group: "apps",
  version: "v1",
  kind: "StatefulSet",
  listKind: "StatefulSetList",
  plural: "statefulsets",
  singular: "statefulset",
  shortNames: ["sts"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [
    scaleSubresource(({ spec }) => spec?.selector),
    statusSubresource("StatefulSet", { validateUpdate: validateStatefulSetStatus }),
  ],
  storageName: "statefulsets",
  schema: statefulSet,
  columns: [
    nameColumn,
    column(
      "Ready",
      ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`,
      "Pods that are ready, of those wanted.",
    ),
    ageColumn,
    ...containerColumns<StatefulSet>((object) => object.spec?.template),
  ],
  selectableFields: {},
  nameFormat: dns1123Label,
  strategy: statefulSetStrategy,
};
