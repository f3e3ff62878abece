/** The client of webhooks that respond to reviews such as `TokenReview`, at the server of a kubeconfig. */

import { kubeconfigTransport } from "../../client/kubeconfig/kubeconfig-transport.ts";
import { loadWebhookKubeconfig } from "../../client/kubeconfig/webhook-kubeconfig.ts";
import { readAll } from "../../client/response.ts";
import type { Connector } from "../../client/transport/connector.ts";
import { makeRequest } from "../../http/request.ts";
import type { Clock } from "../../std/time/clock.ts";
import { inClientSpan } from "../../tracing/span.ts";
import { RetryableError } from "./retry.ts";

export interface ReviewClient extends AsyncDisposable {
  /** Returns the status of the review. Rejects with a `RetryableError` if a retry may succeed. */
  review(spec: object): Promise<unknown>;
}

/** Bounds a response. */
const BYTES_MAX = 4 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

/** Throws an error that names flag and file, for an unusable kubeconfig. */
export async function createReviewClient(
  { flag, path, apiVersion, kind }: Readonly<Record<"flag" | "path" | "apiVersion" | "kind", string>>,
  clock: Clock,
  connector?: Connector | undefined,
): Promise<ReviewClient> {
  const file = await loadWebhookKubeconfig(path).catch((cause: unknown) => {
    throw new Error(`Cannot use ${flag}="${path}": ${(cause as Error).message}`, { cause });
  });
  const transport = kubeconfigTransport(file, { clock, connector });
  const { pathname, search } = new URL(file.server);
  return {
    async review(spec) {
      const stop = new AbortController();
      const timer = clock.timer(TIMEOUT_MS, () => stop.abort(new Error(`no response within ${TIMEOUT_MS / 1000} s`)));
      try {
        const body = JSON.stringify({ kind, apiVersion, metadata: { creationTimestamp: null }, spec, status: {} });
        const headers = { "content-type": "application/json", accept: "application/json" };
        const question = { method: "POST", path: pathname, query: search.slice(1), body, signal: stop.signal };
        const send = (traceHeaders: Readonly<Record<string, string>>) =>
          transport(makeRequest({ ...question, headers: { ...headers, ...traceHeaders } }));
        const answer = await inClientSpan("POST", file.server, send).catch((cause: unknown) => {
          throw new RetryableError((cause as Error).message, { cause });
        });
        const text = (await readAll(answer.body, BYTES_MAX)).toString();
        if (answer.status === 429 || answer.status >= 500)
          throw new RetryableError(`the webhook responded with ${answer.status}`);
        if (answer.status < 200 || answer.status > 299) throw new Error(`the webhook responded with ${answer.status}`);
        return decodeStatus(text, kind);
      } finally {
        timer.cancel();
      }
    },
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}

function decodeStatus(text: string, kind: string): unknown {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new Error("the response of the webhook is not JSON");
  }
  const members = (answer ?? {}) as { readonly kind?: unknown; readonly status?: unknown };
  if (members.kind !== kind) throw new Error(`the response of the webhook is not of kind ${kind}`);
  return members.status ?? {};
}
