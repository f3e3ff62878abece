/** The requests for certificates, one after the other, as the three controllers of them see them. */

import { certificateSigningRequestKind } from "../../api/certificates/certificate-signing-request/kind.ts";
import type { CertificateSigningRequest } from "../../api/certificates/certificate-signing-request/schema.ts";
import { StatusError } from "../../api/status.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { ControllerDeps } from "../controller.ts";

export type WorkOnRequest = (request: CertificateSigningRequest, signal: AbortSignal) => Promise<void>;

/** Works on each request when it changes, and again with growing pauses where that fails, until the signal aborts. */
export async function runRequestQueue(deps: ControllerDeps, what: string, work: WorkOnRequest): Promise<void> {
  const { observer, clock, random, log, signal } = deps;
  await using requests = startInformer(
    { client: observer, clock, random, log, kind: certificateSigningRequestKind },
    signal,
  );
  await using queue = new WorkQueue({
    clock,
    random,
    metrics: deps.queue,
    concurrency: 1,
    backoff: { initialMs: 200, maxMs: 1_000_000, jitter: 0.1 },
    async work(name, stopping) {
      const request = requests.get(name);
      if (request === undefined) return;
      try {
        await work(request, stopping);
      } catch (error) {
        // Changed meanwhile, or gone: the watch tells.
        if (!(error instanceof StatusError) || (error.status.code !== 404 && error.status.code !== 409)) throw error;
      }
    },
    onError: (name, error) => log.error(`Cannot ${what} a request for a certificate; trying again`, error, { name }),
  });
  requests.subscribe({ put: ({ metadata }) => queue.add(metadata?.name ?? "") });
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

export function hasCondition({ status }: CertificateSigningRequest, type: "Approved" | "Denied" | "Failed"): boolean {
  return (status?.conditions ?? []).some((condition) => condition.type === type && condition.status !== "False");
}

/** The request's PEM text. */
export function requestText({ spec }: CertificateSigningRequest): string {
  return Buffer.from(spec.request, "base64").toString("utf8");
}
