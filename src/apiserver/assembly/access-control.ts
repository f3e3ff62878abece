/** Who asks, who may, and what may be written: what stands between a request and the registries. */
import type { AdmissionChain } from "../../admission/chain/chain.ts";
import { createNodeGraph, type NodeGraph } from "../../auth/authz/node/node-graph.ts";
import type { Authorizer } from "../../auth/user.ts";
import { openAdmission } from "../admission/admission.ts";
import { type Identities, identitiesOf } from "../authentication/authenticators.ts";
import { storedBoundObjects } from "../authentication/bound-objects.ts";
import { legacyTokenUse } from "../authentication/legacy-token-use.ts";
import { openAuthorizers } from "../authorization/authorizers.ts";
import { type StoredPolicy, storedPolicy } from "../authorization/stored-policy.ts";
import { authorizationDecisions, measuredAuthenticator, measuredAuthorizer } from "../metrics/auth-metrics.ts";
import { authenticationObserver } from "../metrics/authentication-metrics.ts";
import { authorizerEvents } from "../metrics/authorizer-metrics.ts";
import { measuredNodeGraph } from "../metrics/node-graph-metrics.ts";
import type { ServerBase } from "./server-base.ts";

export interface AccessControl {
  readonly identities: Identities;
  readonly authorizer: Authorizer;
  readonly policy: StoredPolicy;
  /** To be told of what nodes may see; undefined where nobody asks it. */
  readonly graph: NodeGraph | undefined;
  readonly admission: AdmissionChain;
}

export async function createAccessControl(foundation: ServerBase): Promise<AccessControl> {
  const { config, registries, clock, random, stopping, stack, outbound } = foundation;
  const { registry: metrics } = foundation.metrics;
  const identities = stack.use(await createAuthenticators(foundation));
  const policy = storedPolicy(registries);
  const graph = createNodeGraph();
  const authorizers = stack.use(
    await openAuthorizers(config, {
      graph,
      rules: policy,
      nodeSelectors: config.authorization.nodeSelectors,
      nodeAccounts: config.authorization.nodeServiceAccounts,
      decided: authorizationDecisions(metrics),
      clock,
      random,
      log: foundation.log.child("authorization"),
      observe: authorizerEvents(metrics, clock),
    }),
  );
  const authorizer = measuredAuthorizer(authorizers.authorizer, metrics, clock);
  const log = foundation.log.child("admission");
  const identity = () => outbound.pair;
  return {
    identities,
    authorizer,
    policy,
    graph: authorizers.uses("Node") ? measuredNodeGraph(graph, metrics, clock) : undefined,
    admission: await openAdmission(config, { registries, authorizer, clock, random, log, metrics, stopping, clientCertificate: identity }),
  };
}

async function createAuthenticators(foundation: ServerBase): Promise<Identities> {
  const { config, clock, random, registries, stopping } = foundation;
  const { registry: metrics } = foundation.metrics;
  const log = foundation.log.child("authentication");
  const identities = await identitiesOf(config.authentication, {
    clock,
    random,
    log,
    observe: authenticationObserver(metrics, clock),
    used: legacyTokenUse(registries, log, stopping),
    find: storedBoundObjects(registries, stopping),
  });
  return { ...identities, authenticate: measuredAuthenticator(identities.authenticate, metrics, clock) };
}
