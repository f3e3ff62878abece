/** The dependencies of the two webhook plugins. */
import { WebhookClient } from "../../client/webhook/webhook-client.ts";
import { valuesMax } from "../../schema/value/limits.ts";
import type { PluginDeps } from "../chain/factory.ts";
import { WebhookMetrics } from "../chain/metrics.ts";
import type { CallDeps } from "./call-webhook.ts";
import { createWebhookCredentialSource } from "./configuration.ts";
import { DeadlockDetector } from "./deadlock-detector.ts";
import type { OutcomeDeps } from "./failure-policy.ts";
import { createServiceResolver } from "./service-address.ts";

/** Bounds a response. A patch is smaller than the object it changes. */
const RESPONSE_BYTES_MAX = 16 * 1024 * 1024;

export type WebhookDeps = CallDeps & OutcomeDeps & Pick<PluginDeps, "reader" | "scheme" | "authorizer">;

/** Rejects with an error in one sentence, for the operator. */
export async function createWebhookDeps(deps: PluginDeps, plugin: string): Promise<WebhookDeps> {
  const {
    reader,
    scheme,
    authorizer,
    clock,
    random,
    log,
    stopping,
    clientCertificate,
    resolveEndpoints,
    connectorFor,
  } = deps;
  const credentials = await createWebhookCredentialSource(deps.configuration, plugin, clock);
  const client = new WebhookClient({
    clock,
    findService: createServiceResolver({ reader, random, resolveEndpoints }),
    credentialsFor: (hostPort) => credentials?.for(hostPort) ?? clientCertificate(),
    connectorFor,
    userAgent: "kube-apiserver-admission",
    responseBytesMax: RESPONSE_BYTES_MAX,
    responseValuesMax: valuesMax,
  });
  const close = (): void => {
    client[Symbol.dispose]();
    credentials?.[Symbol.dispose]();
  };
  stopping.addEventListener("abort", close, { once: true });
  const deadlocks = new DeadlockDetector(deps);
  return {
    ...{ reader, scheme, authorizer, clock, random, log, client },
    metrics: WebhookMetrics.of(deps.metrics),
    failedClosed: (webhook, request, error) => deadlocks.start(webhook, request, error),
  };
}
