import type { MatchResources } from "../rules.ts";
import { setRuleDefaults } from "../rules-validation.ts";

export function setMatchDefaults(match: MatchResources): MatchResources {
  return {
    ...match,
    namespaceSelector: match.namespaceSelector ?? {},
    objectSelector: match.objectSelector ?? {},
    matchPolicy: match.matchPolicy ?? "Equivalent",
    ...(match.resourceRules === undefined ? {} : { resourceRules: match.resourceRules.map(setRuleDefaults) }),
    ...(match.excludeResourceRules === undefined
      ? {}
      : { excludeResourceRules: match.excludeResourceRules.map(setRuleDefaults) }),
  };
}
