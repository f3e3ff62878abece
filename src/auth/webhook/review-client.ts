/** Webhooks that answer reviews: `TokenReview` and its like, sent to the server that a connection file names. */
import { readAll } from "../../client/response.ts";
import { connectionTo } from "../../client/kubeconfig/kubeconfig-transport.ts";
import { loadConnection } from "../../client/kubeconfig/webhook-kubeconfig.ts";
import { makeRequest } from "../../http/request.ts";
import type { Clock } from "../../std/time/clock.ts";
import { Passing } from "./retry.ts";

export interface ReviewClient extends AsyncDisposable {
  /** The status that the webhook gives. Rejects with a `Passing` where asking again may help. */
  ask(spec: object): Promise<unknown>;
}

/** A longer answer is none. */
const BYTES_MAX = 4 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

/** Throws, naming flag and file, for a connection file that is of no use. */
export async function reviewClient(
  { flag, path, apiVersion, kind }: Readonly<Record<"flag" | "path" | "apiVersion" | "kind", string>>,
  clock: Clock,
): Promise<ReviewClient> {
  const file = await loadConnection(path).catch((cause: unknown) => {
    throw new Error(`Cannot use ${flag}="${path}": ${(cause as Error).message}`, { cause });
  });
  const transport = connectionTo(file, { clock });
  const { pathname, search } = new URL(file.server);
  return {
    async ask(spec) {
      const stop = new AbortController();
      const timer = clock.timer(TIMEOUT_MS, () => stop.abort(new Error(`no answer in ${TIMEOUT_MS / 1000} s`)));
      try {
        const body = JSON.stringify({ kind, apiVersion, metadata: { creationTimestamp: null }, spec, status: {} });
        const headers = { "content-type": "application/json", accept: "application/json" };
        const question = { method: "POST", path: pathname, query: search.slice(1), headers, body, signal: stop.signal };
        const answer = await transport(makeRequest(question)).catch((cause: unknown) => {
          throw new Passing((cause as Error).message, { cause });
        });
        const text = (await readAll(answer.body, BYTES_MAX)).toString();
        if (answer.status === 429 || answer.status >= 500) throw new Passing(`it answered ${answer.status}`);
        if (answer.status < 200 || answer.status > 299) throw new Error(`it answered ${answer.status}`);
        return statusOf(text, kind);
      } finally {
        timer.cancel();
      }
    },
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}

function statusOf(text: string, kind: string): unknown {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new Error("its answer is no JSON");
  }
  const members = (answer ?? {}) as { readonly kind?: unknown; readonly status?: unknown };
  if (members.kind !== kind) throw new Error(`its answer is no ${kind}`);
  return members.status ?? {};
}
