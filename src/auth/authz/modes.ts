import { type Authorization, type Authorizer, MASTERS } from "../user.ts";
import { alwaysAllow, alwaysDeny, privilegedGroup } from "./always.ts";
import { nodeAuthorizer } from "./node/node.ts";
import { createNodeGraph, type NodeGraph } from "./node/node-graph.ts";
import { bootstrapPolicy } from "./rbac/bootstrap-policy/policy.ts";
import { type RuleSource, rbacAuthorizer } from "./rbac/rbac.ts";
import { SubjectRules } from "./rbac/subject-rules.ts";
import { unionAuthorizer } from "./union.ts";

export interface AuthorizerOptions {
  /** Rules for RBAC; default the bootstrap policy. */
  readonly rules?: RuleSource | undefined;
  /** The graph for Node; its owner adds pods and volumes. */
  readonly graph?: NodeGraph | undefined;
  /** For Node: nodes must select their own node and pods when listing them; default true. */
  readonly nodeSelectors?: boolean | undefined;
  /** For Node: nodes may read the service accounts of their pods; default false. */
  readonly nodeServiceAccounts?: boolean | undefined;
  /** For Node: nodes may read the resource claims of their pods; default false. */
  readonly nodeResourceClaims?: boolean | undefined;
  /** Authorizers that need a file (ABAC, Webhook), by mode. */
  readonly fromFiles?: ReadonlyMap<string, Authorizer> | undefined;
  /** Called for each request that a mode allows or denies. */
  readonly observe?: ObserveDecision | undefined;
}

export type ObserveDecision = (mode: string, name: string, decision: "allow" | "deny") => void;

/** A mode and its name in metrics. */
export interface AuthorizerName {
  readonly type: string;
  readonly name: string;
}

const factories: Readonly<Record<string, (sources: AuthorizerOptions) => Authorizer>> = {
  AlwaysAllow: () => alwaysAllow,
  AlwaysDeny: () => alwaysDeny,
  Node: ({ graph, nodeSelectors, nodeServiceAccounts, nodeResourceClaims }) =>
    nodeAuthorizer(graph ?? createNodeGraph(), {
      selectors: nodeSelectors,
      accounts: nodeServiceAccounts,
      resourceClaims: nodeResourceClaims,
    }),
  RBAC: ({ rules }) => rbacAuthorizer(rules ?? new SubjectRules(bootstrapPolicy)),
};

/** Modes that need a file. */
const FILE_MODES: ReadonlySet<string> = new Set(["ABAC", "Webhook"]);

/**
 * The authorizer for `--authorization-mode`: the modes in order, after the group `system:masters`. Throws an error that
 * names the mode if it is unknown, has no file or is a duplicate.
 */
export function createModeAuthorizer(modes: readonly string[], sources: AuthorizerOptions = {}): Authorizer {
  const problem = validateModes(modes, sources);
  if (problem !== undefined) throw new Error(`Cannot use --authorization-mode=${modes.join(",")}: ${problem}`);
  return createAuthorizerChain(
    modes.map((type) => ({ type, name: type === "Webhook" ? "default" : type.toLowerCase() })),
    (type) => createAuthorizer(type, sources),
    sources.observe,
  );
}

/** The authorizers in order, after the group `system:masters`. */
export function createAuthorizerChain(
  entries: readonly AuthorizerName[],
  create: (type: string, name: string) => Authorizer,
  observe: ObserveDecision | undefined,
): Authorizer {
  const chain = entries.map(({ type, name }) => {
    const authorizer = create(type, name);
    return observe === undefined
      ? authorizer
      : observeAuthorizer(authorizer, (decision) => observe(type, name, decision));
  });
  return unionAuthorizer([privilegedGroup(MASTERS), ...chain]);
}

/** The authorizer of a valid mode. */
export function createAuthorizer(type: string, sources: AuthorizerOptions): Authorizer {
  return sources.fromFiles?.get(type) ?? factories[type]!(sources);
}

function observeAuthorizer(authorizer: Authorizer, observe: (decision: "allow" | "deny") => void): Authorizer {
  return {
    ...(authorizer.rulesFor === undefined
      ? {}
      : { rulesFor: (user, namespace) => authorizer.rulesFor!(user, namespace) }),
    authorize(attributes) {
      const answer = authorizer.authorize(attributes);
      return answer instanceof Promise ? answer.then(observed) : observed(answer);
    },
  };

  function observed(answer: Authorization): Authorization {
    if (answer.decision !== "no-opinion") observe(answer.decision);
    return answer;
  }
}

function validateModes(modes: readonly string[], { fromFiles }: AuthorizerOptions): string | undefined {
  if (modes.length === 0) return "at least one mode is required";
  for (const [index, mode] of modes.entries()) {
    if (!FILE_MODES.has(mode) && !Object.hasOwn(factories, mode)) {
      const modes = [...Object.keys(factories), ...FILE_MODES].join(", ");
      return `mode ${JSON.stringify(mode)} is unknown; valid modes are ${modes}`;
    }
    if (modes.indexOf(mode) !== index) return `mode ${JSON.stringify(mode)} is a duplicate`;
    if (FILE_MODES.has(mode) && fromFiles?.has(mode) !== true) return `mode ${JSON.stringify(mode)} needs a file`;
  }
  return undefined;
}
