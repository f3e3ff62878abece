/** The common part of the certificate controllers: syncs each certificate signing request when it changes. */

import { certificateSigningRequestKind } from "../../api/certificates/certificate-signing-request/kind.ts";
import type { CertificateSigningRequest } from "../../api/certificates/certificate-signing-request/schema.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { isNotFoundOrConflict } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";

export type SyncRequest = (request: CertificateSigningRequest, signal: AbortSignal) => Promise<void>;

/**
 * Runs until the signal aborts. Requests with a certificate are done. A request whose sync failed is retried with
 * backoff. `verb` is for log messages.
 */
export async function runCertificateController(deps: ControllerDeps, verb: string, handle: SyncRequest): Promise<void> {
  const { informers, log, signal } = deps;
  const requests = informers.of(certificateSigningRequestKind);
  await using queue = createControllerQueue(deps, {
    name: "certificate",
    workers: 1,
    backoff: { initialMs: 200, maxMs: 1_000_000, jitter: 0.1 },
    sync: syncRequest,
    onError: (name, error) => log.error(`Failed to ${verb} certificate signing request, will retry`, error, { name }),
  });

  async function syncRequest(name: string, stopping: AbortSignal): Promise<void> {
    const request = requests.get(name);
    if (request === undefined || request.status?.certificate) return;
    try {
      await handle(request, stopping);
    } catch (error) {
      if (!isNotFoundOrConflict(error)) throw error;
    }
  }

  using subscriptions = new DisposableStack();
  subscriptions.defer(requests.subscribe({ put: ({ metadata }) => queue.add(metadata?.name ?? "") }));
  await waitForAbort(signal);
}

export function hasCondition({ status }: CertificateSigningRequest, type: "Approved" | "Denied" | "Failed"): boolean {
  return (status?.conditions ?? []).some((condition) => condition.type === type && condition.status !== "False");
}

/** The PEM text of the PKCS #10 request. */
export function requestText({ spec }: CertificateSigningRequest): string {
  return Buffer.from(spec.request, "base64").toString("utf8");
}
