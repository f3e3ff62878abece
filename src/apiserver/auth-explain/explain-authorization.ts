/** Runs the authorizers of the configuration one by one, and finds the rule that decided. */
import { persistentVolumeKind } from "../../api/core/persistent-volume/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import { clusterRoleBindingKind } from "../../api/rbac/cluster-role-binding/kind.ts";
import type { PolicyRule } from "../../api/rbac/policy-rule.ts";
import { roleKind } from "../../api/rbac/role/kind.ts";
import { roleBindingKind } from "../../api/rbac/role-binding/kind.ts";
import {
  type AuthorizerSettings,
  parseAuthorizationConfiguration,
} from "../../auth/authz/authorization-configuration.ts";
import { createNodeGraph, type NodeGraph } from "../../auth/authz/node/node-graph.ts";
import { bootstrapPolicy } from "../../auth/authz/rbac/bootstrap-policy/policy.ts";
import { ruleAllows } from "../../auth/authz/rbac/rbac.ts";
import { SubjectRules } from "../../auth/authz/rbac/subject-rules.ts";
import { type Attributes, type Authorizer, MASTERS } from "../../auth/user.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock as clock } from "../../std/time/clock.ts";
import { type AuthorizersDeps, openAuthorizer, openAuthorizers } from "../authorization/authorizers.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { readFlagFile } from "../config/flag-file.ts";
import type { ObjectSource } from "./objects.ts";

interface Decision {
  readonly name: string;
  readonly outcome: string;
  readonly details: readonly string[];
}

export interface AuthorizationResult {
  readonly decisions: readonly Decision[];
  readonly isAllowed: boolean;
}

type Config = Pick<ApiServerConfig, "authorizationModes" | "authorization">;

/** Rules of the same resource that a refusal shows. */
const NEAR_RULES_MAX = 5;

/** Rejects with a sentence for an unusable configuration. */
export async function explainAuthorization(
  config: Config,
  attributes: Attributes,
  objects: ObjectSource | undefined,
): Promise<AuthorizationResult> {
  if (attributes.user.groups.includes(MASTERS)) {
    const details = [`members of ${MASTERS} are allowed before any authorizer`];
    return { decisions: [{ name: MASTERS, outcome: "allow", details }], isAllowed: true };
  }
  const rules = await readRules(objects);
  const { nodeSelectors, nodeServiceAccounts, nodeResourceClaims } = config.authorization;
  const graph = await readGraph(config, objects);
  const options = { nodeSelectors, nodeServiceAccounts, nodeResourceClaims };
  const deps = { clock, random: systemRandom, log: silentLogger, rules, graph, ...options };
  await using stack = new AsyncDisposableStack();
  const decisions: Decision[] = [];
  for (const { name, type, authorizer } of await openEach(config, deps, stack)) {
    const { decision, reason, error } = await authorizer.authorize(attributes);
    const details = [
      ...(reason === "" ? [] : [reason]),
      ...(error === undefined ? [] : [`error: ${error}`]),
      ...(type === "RBAC" ? explainRules(rules, attributes, decision === "allow") : []),
    ];
    decisions.push({ name, outcome: decision, details });
    if (decision !== "no-opinion") return { decisions, isAllowed: decision === "allow" };
  }
  return { decisions, isAllowed: false };
}

interface NamedAuthorizer {
  readonly name: string;
  readonly type: string;
  readonly authorizer: Authorizer;
}

async function openEach(
  config: Config,
  deps: AuthorizersDeps,
  stack: AsyncDisposableStack,
): Promise<readonly NamedAuthorizer[]> {
  const { configFile, policyFile, webhook } = config.authorization;
  if (configFile !== undefined) {
    const settings = parseAuthorizationConfiguration(
      configFile,
      await readFlagFile("--authorization-config", configFile),
    );
    const open = async (each: AuthorizerSettings): Promise<NamedAuthorizer> => ({
      name: `${each.type} "${each.name}"`,
      type: each.type,
      authorizer: await openAuthorizer(each, config as ApiServerConfig, deps, stack),
    });
    return await Promise.all(settings.map(open));
  }
  const opened: NamedAuthorizer[] = [];
  for (const mode of config.authorizationModes) {
    const files = {
      policyFile: mode === "ABAC" ? policyFile : undefined,
      webhook: { ...webhook, file: mode === "Webhook" ? webhook.file : undefined },
    };
    const authorization = { ...config.authorization, ...files };
    const { authorizer } = stack.use(await openAuthorizers({ authorizationModes: [mode], authorization }, deps));
    opened.push({ name: mode, type: mode, authorizer });
  }
  return opened;
}

async function readRules(objects: ObjectSource | undefined): Promise<SubjectRules> {
  if (objects === undefined) return new SubjectRules(bootstrapPolicy);
  const [clusterRoles, clusterRoleBindings, roles, roleBindings] = await Promise.all([
    objects.list(clusterRoleKind),
    objects.list(clusterRoleBindingKind),
    objects.list(roleKind),
    objects.list(roleBindingKind),
  ]);
  return new SubjectRules({ clusterRoles, clusterRoleBindings, roles, roleBindings });
}

/** Which objects belong to the pods of each node. */
async function readGraph({ authorizationModes }: Config, objects: ObjectSource | undefined): Promise<NodeGraph> {
  const graph = createNodeGraph();
  if (objects === undefined || !authorizationModes.includes("Node")) return graph;
  for (const pod of await objects.list(podKind)) graph.putPod(pod);
  for (const volume of await objects.list(persistentVolumeKind)) graph.putVolume(volume);
  return graph;
}

/** The rule that allows the request, or those that are for the same resource and another verb, group or name. */
function explainRules(rules: SubjectRules, attributes: Attributes, isAllowed: boolean): readonly string[] {
  const near: string[] = [];
  let grants = 0;
  for (const grant of rules.grantsFor(attributes.user, attributes.namespace)) {
    grants++;
    for (const rule of grant.rules) {
      if (isAllowed && ruleAllows(rule, attributes)) return [`rule: ${formatRule(rule)}`];
      if (isNear(rule, attributes) && near.length < NEAR_RULES_MAX) near.push(`${grant.by}: ${formatRule(rule)}`);
    }
  }
  const { name } = attributes.user;
  if (grants === 0) return [`no binding is for ${JSON.stringify(name)} or one of its groups`];
  if (near.length === 0) return [`${grants} bindings are for the user; none has a rule for this resource`];
  return [
    `${grants} bindings are for the user; their rules for this resource do not match:`,
    ...near.map((each) => `  ${each}`),
  ];
}

function isNear({ resources = [] }: PolicyRule, { resource }: Attributes): boolean {
  return resource !== "" && resources.some((each) => each === "*" || each.split("/")[0] === resource);
}

function formatRule({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule): string {
  const lists = { verbs, apiGroups, resources, resourceNames, nonResourceURLs };
  return Object.entries(lists)
    .filter(([, list]) => list !== undefined && list.length > 0)
    .map(([name, list = []]) => `${name} ${JSON.stringify(list)}`)
    .join(", ");
}
