import type { LimitedPriorityLevelConfiguration, PriorityLevelConfiguration, QueuingConfiguration } from "./schema.ts";

export function setPriorityLevelConfigurationDefaults(object: PriorityLevelConfiguration): PriorityLevelConfiguration {
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
