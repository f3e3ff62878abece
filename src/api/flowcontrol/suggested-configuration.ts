/** The suggested flow schemas and priority levels by name. Servers create missing ones; operators may change them. */
import type { FlowSchemaSpec, PolicyRulesWithSubjects, ResourcePolicyRule, Subject } from "./flow-schema/schema.ts";
import { allowEverything, allowEverythingToGroups } from "./mandatory-configuration.ts";
import type { PriorityLevelConfigurationSpec } from "./priority-level-configuration/schema.ts";

const SYSTEM = "kube-system";
const MANAGER = userSubject("system:kube-controller-manager");
const SCHEDULER = userSubject("system:kube-scheduler");

function userSubject(name: string): Subject {
  return { kind: "User", user: { name } };
}

function groupSubject(name: string): Subject {
  return { kind: "Group", group: { name } };
}

function serviceAccountSubject(name: string): Subject {
  return { kind: "ServiceAccount", serviceAccount: { name, namespace: SYSTEM } };
}

function resourceRule(
  verbs: readonly string[],
  apiGroup: string,
  names: readonly string[],
  clusterScope?: true,
): ResourcePolicyRule {
  const scope = clusterScope === undefined ? {} : { clusterScope };
  return { verbs, apiGroups: [apiGroup], resources: names, ...scope, namespaces: ["*"] };
}

const ELECTING = ["get", "create", "update"] as const;
const LEASES = resourceRule(ELECTING, "coordination.k8s.io", ["leases"]);

function createFlowSchema(
  level: string,
  matchingPrecedence: number,
  by: "ByUser" | "ByNamespace" | undefined,
  ...rules: readonly PolicyRulesWithSubjects[]
): FlowSchemaSpec {
  const distinguisher = by === undefined ? {} : { distinguisherMethod: { type: by } };
  return { priorityLevelConfiguration: { name: level }, matchingPrecedence, ...distinguisher, rules };
}

export const suggestedFlowSchemas: Readonly<Record<string, FlowSchemaSpec>> = {
  "system-nodes": createFlowSchema("system", 500, "ByUser", allowEverythingToGroups("system:nodes")),
  "system-node-high": createFlowSchema("node-high", 400, "ByUser", {
    subjects: [groupSubject("system:nodes")],
    resourceRules: [
      resourceRule(["*"], "", ["nodes", "nodes/status"], true),
      resourceRule(["*"], "coordination.k8s.io", ["leases"]),
    ],
  }),
  probes: createFlowSchema("exempt", 2, undefined, {
    subjects: [groupSubject("system:unauthenticated"), groupSubject("system:authenticated")],
    nonResourceRules: [{ verbs: ["get"], nonResourceURLs: ["/healthz", "/readyz", "/livez"] }],
  }),
  "system-leader-election": createFlowSchema("leader-election", 100, "ByUser", {
    subjects: [MANAGER, SCHEDULER, serviceAccountSubject("*")],
    resourceRules: [LEASES],
  }),
  "workload-leader-election": createFlowSchema("leader-election", 200, "ByUser", {
    subjects: [serviceAccountSubject("*")],
    resourceRules: [resourceRule(ELECTING, "", ["endpoints", "configmaps"]), LEASES],
  }),
  "endpoint-controller": createFlowSchema("workload-high", 150, "ByUser", {
    subjects: [
      MANAGER,
      serviceAccountSubject("endpoint-controller"),
      serviceAccountSubject("endpointslicemirroring-controller"),
    ],
    resourceRules: [resourceRule(ELECTING, "", ["endpoints"])],
  }),
  "kube-controller-manager": createFlowSchema("workload-high", 800, "ByNamespace", allowEverything([MANAGER])),
  "kube-scheduler": createFlowSchema("workload-high", 800, "ByNamespace", allowEverything([SCHEDULER])),
  "kube-system-service-accounts": createFlowSchema(
    "workload-high",
    900,
    "ByNamespace",
    allowEverything([serviceAccountSubject("*")]),
  ),
  "service-accounts": createFlowSchema(
    "workload-low",
    9000,
    "ByUser",
    allowEverythingToGroups("system:serviceaccounts"),
  ),
  "global-default": createFlowSchema(
    "global-default",
    9900,
    "ByUser",
    allowEverythingToGroups("system:unauthenticated", "system:authenticated"),
  ),
};

function createLimitedLevel(
  nominalConcurrencyShares: number,
  lendablePercent: number,
  queues: number,
  handSize: number,
): PriorityLevelConfigurationSpec {
  const limitResponse = { type: "Queue", queuing: { queues, handSize, queueLengthLimit: 50 } };
  return { type: "Limited", limited: { nominalConcurrencyShares, lendablePercent, limitResponse } };
}

export const suggestedPriorityLevels: Readonly<Record<string, PriorityLevelConfigurationSpec>> = {
  system: createLimitedLevel(30, 33, 64, 6),
  "node-high": createLimitedLevel(40, 25, 64, 6),
  "leader-election": createLimitedLevel(10, 0, 16, 4),
  "workload-high": createLimitedLevel(40, 50, 128, 6),
  "workload-low": createLimitedLevel(100, 90, 128, 6),
  "global-default": createLimitedLevel(20, 50, 128, 6),
};
