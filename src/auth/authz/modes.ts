import { type Authorizer, MASTERS } from "../user.ts";
import { alwaysAllow, alwaysDeny, privilegedGroup } from "./always.ts";
import { bootstrapPolicy } from "./bootstrap/policy.ts";
import { Grants } from "./grants.ts";
import { nodeAuthorizer } from "./node.ts";
import { createNodeGraph, type NodeGraph } from "./node-graph.ts";
import { type RuleSource, rbacAuthorizer } from "./rbac.ts";
import { unionAuthorizer } from "./union.ts";

export interface AuthorizationSources {
  /** For RBAC; the bootstrap policy when absent. */
  readonly rules?: RuleSource | undefined;
  /** For Node: fed by whoever sees the pods. */
  readonly graph?: NodeGraph | undefined;
  /** Hears of each request that a mode allows or denies. */
  readonly decided?: ((mode: string, decision: "allow" | "deny") => void) | undefined;
}

const makers: Readonly<Record<string, (sources: AuthorizationSources) => Authorizer>> = {
  AlwaysAllow: () => alwaysAllow,
  AlwaysDeny: () => alwaysDeny,
  Node: ({ graph }) => nodeAuthorizer(graph ?? createNodeGraph()),
  RBAC: ({ rules }) => rbacAuthorizer(rules ?? new Grants(bootstrapPolicy)),
};

/** In the list of modes, but not to be had. */
const unavailable: ReadonlySet<string> = new Set(["ABAC", "Webhook"]);

/**
 * `--authorization-mode`: the authorizers in order, with the group `system:masters` before them all. Throws, naming
 * the mode, for one that is unknown, not available or given twice.
 */
export function authorizerFor(modes: readonly string[], sources: AuthorizationSources = {}): Authorizer {
  const problem = modesProblem(modes);
  if (problem !== undefined) throw new Error(`Cannot use --authorization-mode=${modes.join(",")}: ${problem}`);
  return unionAuthorizer([privilegedGroup(MASTERS), ...modes.map((mode) => observed(mode, sources))]);
}

function observed(mode: string, sources: AuthorizationSources): Authorizer {
  const authorizer = makers[mode]!(sources);
  const { decided } = sources;
  if (decided === undefined) return authorizer;
  return {
    ...(authorizer.rulesFor === undefined
      ? {}
      : { rulesFor: (user, namespace) => authorizer.rulesFor!(user, namespace) }),
    async authorize(attributes) {
      const answer = await authorizer.authorize(attributes);
      if (answer.decision !== "no-opinion") decided(mode, answer.decision);
      return answer;
    },
  };
}

function modesProblem(modes: readonly string[]): string | undefined {
  if (modes.length === 0) return "at least one mode is needed";
  for (const [index, mode] of modes.entries()) {
    if (unavailable.has(mode)) return `mode ${JSON.stringify(mode)} is not available yet`;
    if (!Object.hasOwn(makers, mode)) {
      return `mode ${JSON.stringify(mode)} is unknown; there are ${Object.keys(makers).join(", ")}`;
    }
    if (modes.indexOf(mode) !== index) return `mode ${JSON.stringify(mode)} is given twice`;
  }
  return undefined;
}
