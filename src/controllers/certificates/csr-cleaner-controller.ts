/** The CSR cleaner controller: deletes old certificate signing requests, once an hour as in Kubernetes. */
import { X509Certificate } from "node:crypto";
import { certificateSigningRequestKind } from "../../api/certificates/certificate-signing-request/kind.ts";
import type { CertificateSigningRequest } from "../../api/certificates/certificate-signing-request/schema.ts";
import { isNotFoundOrConflict } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";

const HOUR_MS = 3_600_000;
const DECIDED_MAX_AGE_MS = HOUR_MS;
const PENDING_MAX_AGE_MS = 24 * HOUR_MS;

export async function runCsrCleanerController({ client, observer, clock, log, signal }: ControllerDeps): Promise<void> {
  while (!signal.aborted) {
    try {
      const { items } = await observer.list(certificateSigningRequestKind, {}, signal);
      for (const request of items) {
        if (isExpiredRequest(request, clock.now())) await remove(request);
      }
    } catch (error) {
      if (signal.aborted) return;
      log.error("Failed to clean up certificate signing requests, will retry in an hour", error);
    }
    await clock.sleep(HOUR_MS, signal).catch(() => {});
  }

  async function remove({ metadata }: CertificateSigningRequest): Promise<void> {
    const { name = "", uid } = metadata ?? {};
    await client.delete(certificateSigningRequestKind, { name }, { preconditions: { uid } }, signal).catch((error) => {
      if (!isNotFoundOrConflict(error)) throw error;
    });
    log.v(2)?.info("Deleted old certificate signing request", { name });
  }
}

/**
 * Whether the request was denied or failed more than an hour ago, or approved and has its certificate; is pending for
 * more than a day; or has an expired certificate. One that no signer has signed stays.
 */
export function isExpiredRequest({ metadata, status }: CertificateSigningRequest, now: number): boolean {
  const conditions = status?.conditions ?? [];
  const isIssued = Boolean(status?.certificate);
  const decided = conditions.filter(
    ({ type }) => (type === "Approved" && isIssued) || type === "Denied" || type === "Failed",
  );
  if (decided.some(({ lastUpdateTime }) => isBefore(lastUpdateTime, now - DECIDED_MAX_AGE_MS))) return true;
  if (conditions.length === 0 && isBefore(metadata?.creationTimestamp, now - PENDING_MAX_AGE_MS)) return true;
  return isExpiredCertificate(status?.certificate, now);
}

function isBefore(time: string | undefined, limit: number): boolean {
  return time !== undefined && Date.parse(time) < limit;
}

function isExpiredCertificate(certificate: string | undefined, now: number): boolean {
  if (certificate === undefined || certificate === "") return false;
  try {
    return new X509Certificate(Buffer.from(certificate, "base64")).validToDate.getTime() < now;
  } catch {
    return false;
  }
}
