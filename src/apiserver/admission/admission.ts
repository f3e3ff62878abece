/** The plugins that have a say in this server's writes, given what they need. */
import { AdmissionChain } from "../../admission/chain/chain.ts";
import { createPlugins } from "../../admission/chain/create-plugins.ts";
import { AdmissionMetrics } from "../../admission/chain/metrics.ts";
import type { KeyPair } from "../../auth/pki/key-pair.ts";
import type { Authorizer } from "../../auth/user.ts";
import { createObjectWriter, createObjectReader } from "../../registry/lookup.ts";
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
  /** How the server proves to webhooks who it is. */
  readonly clientCertificate: () => KeyPair | undefined;
}

/** The half of `--authorization-mode=Node` that sees objects. */
const NODE_RESTRICTION = "NodeRestriction";

/** Rejects with one sentence for an operator. */
export async function createAdmissionChain(
  { admission, authorizationModes, observability }: Pick<ApiServerConfig, "admission" | "authorizationModes" | "observability">,
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
    deps.log.warn("Admission plugins that this build does not have", { names: missing.join(", ") });
  if (authorizationModes.includes("Node") && !plugins.some(({ name }) => name === NODE_RESTRICTION)) {
    deps.log.warn("Nodes may write what is other nodes': nobody looks at what they write", {
      help: `--enable-admission-plugins=${NODE_RESTRICTION}`,
    });
  }
  deps.log.info("Admission plugins, in their order", { names: plugins.map(({ name }) => name).join(", ") });
  return new AdmissionChain(plugins, new AdmissionMetrics(deps.metrics, deps.clock));
}
