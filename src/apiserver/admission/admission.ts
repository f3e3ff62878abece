/** Creates the admission chain with the plugins that the configuration enables. */
import { AdmissionChain } from "../../admission/chain/chain.ts";
import { createPlugins } from "../../admission/chain/create-plugins.ts";
import { AdmissionMetrics } from "../../admission/chain/metrics.ts";
import type { KeyPair } from "../../auth/pki/key-pair.ts";
import type { Authorizer } from "../../auth/user.ts";
import type { FindWebhookConnector } from "../../client/webhook/webhook-client.ts";
import { createObjectReader, createObjectWriter } from "../../registry/object-access.ts";
import type { Registries } from "../../registry/registries.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ApiServerConfig } from "../config/config.ts";

export interface AdmissionDeps {
  readonly registries: Registries;
  readonly authorizer: Authorizer;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly metrics: MetricRegistry;
  readonly stopping: AbortSignal;
  /** The client certificate for webhooks. */
  readonly clientCertificate: () => KeyPair | undefined;
  /** How to connect to a webhook; undefined: all directly. */
  readonly connectorFor?: FindWebhookConnector | undefined;
}

/** Restricts nodes' writes by the objects' content, which the authorization mode Node does not see. */
const NODE_RESTRICTION = "NodeRestriction";

/** Rejects with one sentence for an operator. */
export async function createAdmissionChain(
  {
    admission,
    authorizationModes,
    observability,
  }: Pick<ApiServerConfig, "admission" | "authorizationModes" | "observability">,
  { registries, ...deps }: AdmissionDeps,
): Promise<AdmissionChain> {
  const gates = new Set(observability.features.filter(({ enabled }) => enabled).map(({ name }) => name));
  const { plugins, missing } = await createPlugins(admission, {
    ...deps,
    reader: createObjectReader(registries),
    writer: createObjectWriter(registries),
    scheme: registries.scheme,
    isFeatureEnabled: (gate) => gates.has(gate),
    tolerationSeconds: admission.tolerationSeconds,
    resolveEndpoints: admission.serviceEndpoints,
  });
  if (missing.length > 0)
    deps.log.warn("This build does not have these admission plugins", { names: missing.join(", ") });
  if (authorizationModes.includes("Node") && !plugins.some(({ name }) => name === NODE_RESTRICTION)) {
    deps.log.warn("Nodes may modify objects of other nodes: the admission plugin NodeRestriction is disabled", {
      help: `--enable-admission-plugins=${NODE_RESTRICTION}`,
    });
  }
  deps.log.info("Loaded admission plugins in order", { names: plugins.map(({ name }) => name).join(", ") });
  return new AdmissionChain(plugins, new AdmissionMetrics(deps.metrics, deps.clock), [], deps.log);
}
