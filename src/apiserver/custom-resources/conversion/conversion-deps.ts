/** Creates the client of conversion webhooks, which works as that of admission webhooks. */
import { createServiceResolver } from "../../../admission/webhooks/service-address.ts";
import type { KeyPair } from "../../../auth/pki/key-pair.ts";
import { type FindWebhookConnector, WebhookClient } from "../../../client/webhook/webhook-client.ts";
import { createObjectReader } from "../../../registry/object-access.ts";
import type { Registries } from "../../../registry/registries.ts";
import type { RandomSource } from "../../../std/crypto/random.ts";
import type { MetricRegistry } from "../../../std/metrics/metrics.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { ApiServerConfig } from "../../config/config.ts";
import { RuleMetrics } from "../rule-metrics.ts";
import { ConversionMetrics } from "./conversion-metrics.ts";
import type { ConversionDeps } from "./conversion-webhook.ts";

/** Four times the maximum size of a request; the versions of an object have about the same size. */
const ANSWER_BYTES_MAX = 16 * 2 ** 20;
/** More than the largest object may have, or the content of a review. */
const ANSWER_VALUES_MAX = 500_000;

export interface ConversionClientDeps {
  readonly registries: Registries;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly metrics: MetricRegistry;
  readonly stopping: AbortSignal;
  /** The client certificate for webhooks. */
  readonly identity: () => KeyPair | undefined;
  /** How to connect to a webhook; undefined: all directly. */
  readonly connectorFor?: FindWebhookConnector | undefined;
}

export function createConversionDeps(
  { admission }: Pick<ApiServerConfig, "admission">,
  { registries, clock, random, metrics, stopping, identity, connectorFor }: ConversionClientDeps,
): ConversionDeps {
  const reader = createObjectReader(registries);
  const client = new WebhookClient({
    clock,
    findService: createServiceResolver({ reader, random, resolveEndpoints: admission.serviceEndpoints }),
    credentialsFor: identity,
    connectorFor,
    userAgent: "kube-apiserver",
    responseBytesMax: ANSWER_BYTES_MAX,
    responseValuesMax: ANSWER_VALUES_MAX,
  });
  stopping.addEventListener("abort", () => client[Symbol.dispose](), { once: true });
  const rules = new RuleMetrics(metrics, clock);
  return { client, clock, random, stopping, metrics: new ConversionMetrics(metrics), rules };
}
