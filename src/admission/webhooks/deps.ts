/** What both plugins that call webhooks are made of. */
import { WebhookClient } from "../../client/webhook/webhook-client.ts";
import type { PluginDeps } from "../chain/factory.ts";
import { WebhookMetrics } from "../chain/metrics.ts";
import type { CallDeps } from "./call.ts";
import { webhookCredentials } from "./configuration.ts";
import { Deadlocks } from "./deadlock.ts";
import type { OutcomeDeps } from "./outcome.ts";
import { serviceAddress } from "./service-address.ts";

/** A longer answer is none: patches are smaller than the objects they change. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

export type WebhookDeps = CallDeps & OutcomeDeps & Pick<PluginDeps, "reader" | "scheme" | "authorizer">;

/** Rejects with one sentence for the operator. */
export async function webhookDeps(deps: PluginDeps, plugin: string): Promise<WebhookDeps> {
  const { reader, scheme, authorizer, clock, random, log, stopping, clientCertificate, resolveEndpoints } = deps;
  const named = await webhookCredentials(deps.configuration, plugin, clock);
  const client = new WebhookClient({
    clock,
    findService: serviceAddress({ reader, random, resolveEndpoints: toEndpoints }),
    credentialsFor: (hostPort) => named?.for(hostPort) ?? clientCertificate(),
    userAgent: "kube-apiserver-admission",
    answerBytesMax: ANSWER_BYTES_MAX,
  });
  const close = (): void => {
    client[Symbol.dispose]();
    named?.[Symbol.dispose]();
  };
  stopping.addEventListener("abort", close, { once: true });
  const deadlocks = new Deadlocks(deps);
  return {
    ...{ reader, scheme, authorizer, clock, random, log, client },
    metrics: WebhookMetrics.of(deps.metrics),
    failedClosed: (hook, request, error) => deadlocks.look(hook, request, error),
  };
}
