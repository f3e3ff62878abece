import { type Authorizer, MASTERS } from "../user.ts";
import { alwaysAllow, alwaysDeny, privilegedGroup } from "./always.ts";
import { bootstrapPolicy } from "./rbac/bootstrap-policy/policy.ts";
import { Grants } from "./rbac/subject-rules.ts";
import { nodeAuthorizer } from "./node/node.ts";
import { createNodeGraph, type NodeGraph } from "./node/node-graph.ts";
import { type RuleSource, rbacAuthorizer } from "./rbac/rbac.ts";
import { unionAuthorizer } from "./union.ts";

export interface AuthorizationSources {
  /** For RBAC; the bootstrap policy when absent. */
  readonly rules?: RuleSource | undefined;
  /** For Node: fed by whoever sees the pods. */
  readonly graph?: NodeGraph | undefined;
  /** For Node: lists of nodes and pods must select the node's own; true when absent. */
  readonly nodeSelectors?: boolean | undefined;
  /** For Node: nodes may read the service accounts of their pods; false when absent. */
  readonly nodeAccounts?: boolean | undefined;
  /** What is made from files: ABAC and webhooks, by the name of the mode. */
  readonly made?: ReadonlyMap<string, Authorizer> | undefined;
  /** Hears of each request that a mode allows or denies. */
  readonly decided?: Decided | undefined;
}

export type Decided = (mode: string, name: string, decision: "allow" | "deny") => void;

/** One of the chain: a mode, and what metrics call it. */
export interface AuthorizerName {
  readonly type: string;
  readonly name: string;
}

const makers: Readonly<Record<string, (sources: AuthorizationSources) => Authorizer>> = {
  AlwaysAllow: () => alwaysAllow,
  AlwaysDeny: () => alwaysDeny,
  Node: ({ graph, nodeSelectors, nodeAccounts }) =>
    nodeAuthorizer(graph ?? createNodeGraph(), { selectors: nodeSelectors, accounts: nodeAccounts }),
  RBAC: ({ rules }) => rbacAuthorizer(rules ?? new Grants(bootstrapPolicy)),
};

/** Made from files. */
const MADE: ReadonlySet<string> = new Set(["ABAC", "Webhook"]);

/**
 * `--authorization-mode`: the authorizers in order, with the group `system:masters` before them all. Throws, naming
 * the mode, for one that is unknown, lacks its file or is given twice.
 */
export function authorizerFor(modes: readonly string[], sources: AuthorizationSources = {}): Authorizer {
  const problem = modesProblem(modes, sources);
  if (problem !== undefined) throw new Error(`Cannot use --authorization-mode=${modes.join(",")}: ${problem}`);
  return authorizerChain(
    modes.map((type) => ({ type, name: type === "Webhook" ? "default" : type.toLowerCase() })),
    (type) => authorizerOf(type, sources),
    sources.decided,
  );
}

/** The authorizers in order, with the group `system:masters` before them all. */
export function authorizerChain(
  named: readonly AuthorizerName[],
  make: (type: string, name: string) => Authorizer,
  decided: Decided | undefined,
): Authorizer {
  const chain = named.map(({ type, name }) => {
    const authorizer = make(type, name);
    return decided === undefined ? authorizer : observed(authorizer, (decision) => decided(type, name, decision));
  });
  return unionAuthorizer([privilegedGroup(MASTERS), ...chain]);
}

/** Of a mode that has been checked. */
export function authorizerOf(type: string, sources: AuthorizationSources): Authorizer {
  return sources.made?.get(type) ?? makers[type]!(sources);
}

function observed(authorizer: Authorizer, decided: (decision: "allow" | "deny") => void): Authorizer {
  return {
    ...(authorizer.rulesFor === undefined
      ? {}
      : { rulesFor: (user, namespace) => authorizer.rulesFor!(user, namespace) }),
    async authorize(attributes) {
      const answer = await authorizer.authorize(attributes);
      if (answer.decision !== "no-opinion") decided(answer.decision);
      return answer;
    },
  };
}

function modesProblem(modes: readonly string[], { made }: AuthorizationSources): string | undefined {
  if (modes.length === 0) return "at least one mode is needed";
  for (const [index, mode] of modes.entries()) {
    if (!MADE.has(mode) && !Object.hasOwn(makers, mode)) {
      const known = [...Object.keys(makers), ...MADE].join(", ");
      return `mode ${JSON.stringify(mode)} is unknown; there are ${known}`;
    }
    if (modes.indexOf(mode) !== index) return `mode ${JSON.stringify(mode)} is given twice`;
    if (MADE.has(mode) && made?.has(mode) !== true) return `mode ${JSON.stringify(mode)} needs its file`;
  }
  return undefined;
}
