import type { Authorizer } from "../user.ts";
import type { NodeGraph } from "./node.ts";
import type { RuleSource } from "./rbac.ts";

export interface AuthorizationSources {
  /** For RBAC; the bootstrap policy when absent. */
  readonly rules?: RuleSource | undefined;
  /** For Node. */
  readonly graph?: NodeGraph | undefined;
}

/** `--authorization-mode`: the authorizers in order. Throws, naming the mode, for one that is unknown or not available. */
export declare function authorizerFor(modes: readonly string[], sources: AuthorizationSources): Authorizer;
