/** Deletes requests for certificates that nobody needs any more, by their ages; looks once an hour, as Kubernetes. */
import { X509Certificate } from "node:crypto";
import { certificateSigningRequestKind } from "../../api/certificates/certificate-signing-request/kind.ts";
import type { CertificateSigningRequest } from "../../api/certificates/certificate-signing-request/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { ControllerDeps } from "../controller.ts";

const HOUR_MS = 3_600_000;
const DECIDED_MS = HOUR_MS;
const PENDING_MS = 24 * HOUR_MS;

export async function runCleanController({ client, observer, clock, log, signal }: ControllerDeps): Promise<void> {
  while (!signal.aborted) {
    try {
      const { items } = await observer.list(certificateSigningRequestKind, {}, signal);
      for (const request of items) {
        if (isOver(request, clock.now())) await remove(request);
      }
    } catch (error) {
      if (signal.aborted) return;
      log.error("Cannot clean up requests for certificates; trying again in an hour", error);
    }
    await clock.sleep(HOUR_MS, signal).catch(() => {});
  }

  async function remove({ metadata }: CertificateSigningRequest): Promise<void> {
    const { name = "", uid } = metadata ?? {};
    await client.delete(certificateSigningRequestKind, { name }, { preconditions: { uid } }, signal).catch((error) => {
      if (!(error instanceof StatusError) || (error.status.code !== 404 && error.status.code !== 409)) throw error;
    });
    log.v(2)?.info("Deleted an old request for a certificate", { name });
  }
}

/** Whether a request has been decided for an hour, has waited for a day, or led to what is no longer valid. */
export function isOver({ metadata, status }: CertificateSigningRequest, now: number): boolean {
  const conditions = status?.conditions ?? [];
  const decided = conditions.filter(({ type }) => type === "Approved" || type === "Denied" || type === "Failed");
  if (decided.some(({ lastUpdateTime }) => isBefore(lastUpdateTime, now - DECIDED_MS))) return true;
  if (decided.length === 0 && isBefore(metadata?.creationTimestamp, now - PENDING_MS)) return true;
  return isExpired(status?.certificate, now);
}

function isBefore(time: string | undefined, limit: number): boolean {
  return time !== undefined && Date.parse(time) < limit;
}

function isExpired(certificate: string | undefined, now: number): boolean {
  if (certificate === undefined || certificate === "") return false;
  try {
    return new X509Certificate(Buffer.from(certificate, "base64")).validToDate.getTime() < now;
  } catch {
    return false;
  }
}
