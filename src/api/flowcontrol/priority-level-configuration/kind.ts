import { deepEqual } from "../../../schema/value/equal.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import {
  dropStatus,
  keepStatus,
  replaceStatusOnly,
  setFirstGeneration,
  statusSubresource,
  updateGeneration,
} from "../../strategy.ts";
import {
  type LimitedPriorityLevelConfiguration,
  type PriorityLevelConfiguration,
  priorityLevelConfiguration,
  type QueuingConfiguration,
} from "./schema.ts";
import { validatePriorityLevel } from "./validation.ts";

function setPriorityLevelConfigurationDefaults(object: PriorityLevelConfiguration): PriorityLevelConfiguration {
  if (object.spec === undefined) return object;
  const { limited, exempt, ...spec } = object.spec;
  return {
    ...object,
    spec: {
      ...spec,
      ...(limited === undefined ? {} : { limited: setLimitedDefaults(limited) }),
      ...(exempt === undefined
        ? {}
        : {
            exempt: {
              nominalConcurrencyShares: exempt.nominalConcurrencyShares ?? 0,
              lendablePercent: exempt.lendablePercent ?? 0,
            },
          }),
    },
  };
}

function setLimitedDefaults(limited: LimitedPriorityLevelConfiguration): LimitedPriorityLevelConfiguration {
  const { limitResponse } = limited;
  const queuing = limitResponse?.queuing;
  return {
    ...limited,
    nominalConcurrencyShares: limited.nominalConcurrencyShares ?? 30,
    lendablePercent: limited.lendablePercent ?? 0,
    ...(limitResponse === undefined || queuing === undefined
      ? {}
      : { limitResponse: { ...limitResponse, queuing: setQueuingDefaults(queuing) } }),
  };
}

function setQueuingDefaults({ queues, handSize, queueLengthLimit }: QueuingConfiguration): QueuingConfiguration {
  return { queues: queues || 64, handSize: handSize || 8, queueLengthLimit: queueLengthLimit || 50 };
}

const priorityLevelConfigurationStrategy: Strategy<PriorityLevelConfiguration> = {
  setDefaults: setPriorityLevelConfigurationDefaults,
  prepareForCreate: (object) => setFirstGeneration(dropStatus(object)),
  prepareForUpdate: (next, previous) =>
    updateGeneration(keepStatus(next, previous), previous, !deepEqual(next.spec, previous.spec)),
  validate: validatePriorityLevel,
};

function sharesOf({ spec }: PriorityLevelConfiguration): number | string {
  return (spec?.limited ?? spec?.exempt)?.nominalConcurrencyShares ?? "<none>";
}

function queuingOf({ spec }: PriorityLevelConfiguration): QueuingConfiguration | undefined {
  return spec?.limited?.limitResponse?.queuing;
}

export const priorityLevelConfigurationKind: Kind<PriorityLevelConfiguration> = {
  group: "flowcontrol.apiserver.svc.io",
  version: "v1",
  kind: "PriorityLevelConfiguration",
  listKind: "PriorityLevelConfigurationList",
  plural: "prioritylevelconfigurations",
  singular: "prioritylevelconfiguration",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [
    statusSubresource("PriorityLevelConfiguration", {
      prepareForUpdate: replaceStatusOnly,
      validateUpdate: validatePriorityLevel,
      resetFields: [["metadata"], ["spec"]],
    }),
  ],
  storageName: "prioritylevelconfigurations",
  schema: priorityLevelConfiguration,
  columns: [
    nameColumn,
    column("Type", ({ spec }) => spec?.type ?? "", "Whether its requests are limited at all."),
    column("NominalConcurrencyShares", sharesOf, "Its part of all that may be served at once."),
    column("Queues", (object) => queuingOf(object)?.queues ?? "<none>"),
    column("HandSize", (object) => queuingOf(object)?.handSize ?? "<none>"),
    column("QueueLengthLimit", (object) => queuingOf(object)?.queueLengthLimit ?? "<none>"),
    ageColumn,
  ],
  selectableFields: {},
  strategy: priorityLevelConfigurationStrategy,
};
