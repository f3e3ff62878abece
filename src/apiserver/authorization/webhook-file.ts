/** Authorizers that request a SubjectAccessReview of a webhook, which a kubeconfig file names. */
import type { SubjectAccessReviewStatus } from "../../api/authorization/access-review/schema.ts";
import type { WebhookSettings } from "../../auth/authz/authorization-configuration.ts";
import { webhookAuthorizer } from "../../auth/authz/webhook/webhook.ts";
import type { Authorizer } from "../../auth/user.ts";
import { kubeconfigTransport } from "../../client/kubeconfig/kubeconfig-transport.ts";
import { loadWebhookKubeconfig } from "../../client/kubeconfig/webhook-kubeconfig.ts";
import { readAll, readError } from "../../client/response.ts";
import { makeRequest } from "../../http/request.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import type { AuthorizersDeps } from "./authorizers.ts";

/** The maximum size of a webhook's response. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

/** Throws one sentence for an invalid file. */
export async function openWebhook(
  name: string,
  settings: WebhookSettings,
  deps: AuthorizersDeps,
  stack: AsyncDisposableStack,
): Promise<Authorizer> {
  const { clock, connector } = deps;
  const file = await loadWebhookKubeconfig(settings.file);
  const { pathname: path, search } = new URL(file.server);
  const transport = stack.use(kubeconfigTransport(file, { clock, connector, userAgent: "svc-apiserver" }));
  const apiVersion = `authorization.k8s.io/${settings.version}`;
  return webhookAuthorizer({
    ...deps,
    ...settings,
    observe: deps.observer,
    name,
    async review(spec) {
      const { groups, ...rest } = spec;
      const reviewSpec =
        settings.version === "v1" ? spec : { ...rest, ...(groups === undefined ? {} : { group: groups }) };
      const review = { kind: "SubjectAccessReview", apiVersion, metadata: {}, spec: reviewSpec };
      const headers = { "content-type": "application/json", accept: "application/json" };
      const signal = AbortSignal.timeout(settings.timeoutMs);
      const request = { method: "POST", path, query: search.slice(1), headers, body: JSON.stringify(review), signal };
      const response = await transport(makeRequest(request));
      if (response.status < 200 || response.status > 299) throw await readError(response);
      return parseReviewStatus((await readAll(response.body, ANSWER_BYTES_MAX)).toString());
    },
  });
}

function parseReviewStatus(text: string): SubjectAccessReviewStatus {
  let review: unknown;
  try {
    review = JSON.parse(text);
  } catch (cause) {
    throw new Error("the webhook's response is not a SubjectAccessReview: it is not JSON", { cause });
  }
  const status = isPlainObject(review) ? (review as Readonly<Record<string, unknown>>).status : undefined;
  if (!isPlainObject(status)) throw new Error("the webhook's response is not a SubjectAccessReview: it has no status");
  const { allowed = false, denied = false, reason = "" } = status as Readonly<Record<string, unknown>>;
  if (typeof allowed !== "boolean" || typeof denied !== "boolean" || typeof reason !== "string") {
    throw new Error("the webhook's response is not a SubjectAccessReview: allowed and denied must be true or false");
  }
  return { allowed, denied, reason };
}
