/** The mandatory flow schemas and priority levels by name. Servers reset changes of them. */
import type { FlowSchemaSpec, PolicyRulesWithSubjects, Subject } from "./flow-schema/schema.ts";
import type { PriorityLevelConfigurationSpec } from "./priority-level-configuration/schema.ts";

export function allowEverything(subjects: readonly Subject[]): PolicyRulesWithSubjects {
  return {
    subjects,
    resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"] }],
    nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
  };
}

export function allowEverythingToGroups(...groups: readonly string[]): PolicyRulesWithSubjects {
  return allowEverything(groups.map((name) => ({ kind: "Group", group: { name } })));
}

export const mandatoryFlowSchemas: Readonly<Record<string, FlowSchemaSpec>> = {
  exempt: {
    priorityLevelConfiguration: { name: "exempt" },
    matchingPrecedence: 1,
    rules: [allowEverythingToGroups("system:masters")],
  },
  "catch-all": {
    priorityLevelConfiguration: { name: "catch-all" },
    matchingPrecedence: 10_000,
    distinguisherMethod: { type: "ByUser" },
    rules: [allowEverythingToGroups("system:unauthenticated", "system:authenticated")],
  },
};

export const mandatoryPriorityLevels: Readonly<Record<string, PriorityLevelConfigurationSpec>> = {
  exempt: { type: "Exempt", exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } },
  "catch-all": {
    type: "Limited",
    limited: { nominalConcurrencyShares: 5, lendablePercent: 0, limitResponse: { type: "Reject" } },
  },
};
