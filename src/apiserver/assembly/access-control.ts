/** Authentication, authorization and admission, from the configuration. */
import type { AdmissionChain } from "../../admission/chain/chain.ts";
import { createNodeGraph, type NodeGraph } from "../../auth/authz/node/node-graph.ts";
import type { Authorizer } from "../../auth/user.ts";
import { createDecisionCounter, measureAuthenticator, measureAuthorizer } from "../../component/auth-metrics.ts";
import { createAdmissionChain } from "../admission/admission.ts";
import { type Authenticators, openAuthenticators } from "../authentication/authenticators.ts";
import { createBoundObjectFinder } from "../authentication/bound-objects.ts";
import { createLegacyTokenUseRecorder } from "../authentication/legacy-token-use.ts";
import { openAuthorizers } from "../authorization/authorizers.ts";
import { createStoredPolicy, type StoredPolicy } from "../authorization/stored-policy.ts";
import { webhookConnectors } from "../egress/webhook-connectors.ts";
import { createAuthenticationObserver } from "../metrics/authentication-metrics.ts";
import { createAuthorizerObserver } from "../metrics/authorizer-metrics.ts";
import { measureNodeGraph } from "../metrics/node-graph-metrics.ts";
import type { ServerBase } from "./server-base.ts";

export interface AccessControl {
  readonly authenticators: Authenticators;
  readonly authorizer: Authorizer;
  readonly policy: StoredPolicy;
  /** The graph of the node authorizer, to be fed with objects; undefined when mode Node is not used. */
  readonly nodeGraph: NodeGraph | undefined;
  readonly admission: AdmissionChain;
}

export async function createAccessControl(base: ServerBase): Promise<AccessControl> {
  const { config, registries, clock, random, stopping, resources, proxyClientCertificate } = base;
  const { registry: metrics } = base.metrics;
  const identities = resources.use(await createAuthenticators(base));
  const policy = createStoredPolicy(registries);
  const graph = createNodeGraph();
  const authorizers = resources.use(
    await openAuthorizers(config, {
      graph,
      rules: policy,
      nodeSelectors: config.authorization.nodeSelectors,
      nodeServiceAccounts: config.authorization.nodeServiceAccounts,
      nodeResourceClaims: config.authorization.nodeResourceClaims,
      observe: createDecisionCounter(metrics),
      clock,
      random,
      log: base.log.child("authorization"),
      observer: createAuthorizerObserver(metrics, clock),
      connector: base.egress?.("controlplane"),
    }),
  );
  const authorizer = measureAuthorizer(authorizers.authorizer, metrics, clock);
  const log = base.log.child("admission");
  const clientCertificate = () => proxyClientCertificate.pair;
  return {
    authenticators: identities,
    authorizer,
    policy,
    nodeGraph: authorizers.uses("Node") ? measureNodeGraph(graph, metrics, clock) : undefined,
    admission: await createAdmissionChain(config, {
      registries,
      authorizer,
      clock,
      random,
      log,
      metrics,
      stopping,
      clientCertificate,
      connectorFor: webhookConnectors(base.egress),
    }),
  };
}

async function createAuthenticators(base: ServerBase): Promise<Authenticators> {
  const { config, clock, random, registries, stopping } = base;
  const { registry: metrics } = base.metrics;
  const log = base.log.child("authentication");
  const opened = await openAuthenticators(config.authentication, {
    clock,
    random,
    log,
    observe: createAuthenticationObserver(metrics, clock),
    recordLastUsed: createLegacyTokenUseRecorder(registries, log, stopping),
    findBoundObject: createBoundObjectFinder(registries, stopping),
    connector: base.egress?.("controlplane"),
  });
  return { ...opened, authenticate: measureAuthenticator(opened.authenticate, metrics, clock) };
}
