/** The suggested flow schemas and priority levels by name. Servers create missing ones; operators may change them. */
import type { FlowSchemaSpec, PolicyRulesWithSubjects, ResourcePolicyRule, Subject } from "./flow-schema/schema.ts";
import { allowEverything, allowEverythingToGroups } from "./mandatory-configuration.ts";
import type { PriorityLevelConfigurationSpec } from "./priority-level-configuration/schema.ts";

const SYSTEM = "kube-system";
const MANAGER = user("system:kube-controller-manager");
const SCHEDULER = user("system:kube-scheduler");

function user(name: string): Subject {
  return { kind: "User", user: { name } };
}

function group(name: string): Subject {
  return { kind: "Group", group: { name } };
}

function account(name: string): Subject {
  return { kind: "ServiceAccount", serviceAccount: { name, namespace: SYSTEM } };
}

function resources(
  verbs: readonly string[],
  apiGroup: string,
  names: readonly string[],
  clusterScope?: true,
): ResourcePolicyRule {
  const scope = clusterScope === undefined ? {} : { clusterScope };
  return { verbs, apiGroups: [apiGroup], resources: names, ...scope, namespaces: ["*"] };
}

const ELECTING = ["get", "create", "update"] as const;
const LEASES = resources(ELECTING, "coordination.k8s.io", ["leases"]);

function flow(
  level: string,
  matchingPrecedence: number,
  by: "ByUser" | "ByNamespace" | undefined,
  ...rules: readonly PolicyRulesWithSubjects[]
): FlowSchemaSpec {
  const distinguisher = by === undefined ? {} : { distinguisherMethod: { type: by } };
  return { priorityLevelConfiguration: { name: level }, matchingPrecedence, ...distinguisher, rules };
}

export const suggestedFlowSchemas: Readonly<Record<string, FlowSchemaSpec>> = {
  "system-nodes": flow("system", 500, "ByUser", allowEverythingToGroups("system:nodes")),
  "system-node-high": flow("node-high", 400, "ByUser", {
    subjects: [group("system:nodes")],
    resourceRules: [
      resources(["*"], "", ["nodes", "nodes/status"], true),
      resources(["*"], "coordination.k8s.io", ["leases"]),
    ],
  }),
  probes: flow("exempt", 2, undefined, {
    subjects: [group("system:unauthenticated"), group("system:authenticated")],
    nonResourceRules: [{ verbs: ["get"], nonResourceURLs: ["/healthz", "/readyz", "/livez"] }],
  }),
  "system-leader-election": flow("leader-election", 100, "ByUser", {
    subjects: [MANAGER, SCHEDULER, account("*")],
    resourceRules: [LEASES],
  }),
  "workload-leader-election": flow("leader-election", 200, "ByUser", {
    subjects: [account("*")],
    resourceRules: [resources(ELECTING, "", ["endpoints", "configmaps"]), LEASES],
  }),
  "endpoint-controller": flow("workload-high", 150, "ByUser", {
    subjects: [MANAGER, account("endpoint-controller"), account("endpointslicemirroring-controller")],
    resourceRules: [resources(ELECTING, "", ["endpoints"])],
  }),
  "kube-controller-manager": flow("workload-high", 800, "ByNamespace", allowEverything([MANAGER])),
  "kube-scheduler": flow("workload-high", 800, "ByNamespace", allowEverything([SCHEDULER])),
  "kube-system-service-accounts": flow("workload-high", 900, "ByNamespace", allowEverything([account("*")])),
  "service-accounts": flow("workload-low", 9000, "ByUser", allowEverythingToGroups("system:serviceaccounts")),
  "global-default": flow(
    "global-default",
    9900,
    "ByUser",
    allowEverythingToGroups("system:unauthenticated", "system:authenticated"),
  ),
};

function limited(
  nominalConcurrencyShares: number,
  lendablePercent: number,
  queues: number,
  handSize: number,
): PriorityLevelConfigurationSpec {
  const limitResponse = { type: "Queue", queuing: { queues, handSize, queueLengthLimit: 50 } };
  return { type: "Limited", limited: { nominalConcurrencyShares, lendablePercent, limitResponse } };
}

export const suggestedPriorityLevels: Readonly<Record<string, PriorityLevelConfigurationSpec>> = {
  system: limited(30, 33, 64, 6),
  "node-high": limited(40, 25, 64, 6),
  "leader-election": limited(10, 0, 16, 4),
  "workload-high": limited(40, 50, 128, 6),
  "workload-low": limited(100, 90, 128, 6),
  "global-default": limited(20, 50, 128, 6),
};
