/** The CSR signing controller: signs approved requests for Kubernetes' signers. */

import { certificateSigningRequestKind } from "../../api/certificates/certificate-signing-request/kind.ts";
import type { CertificateSigningRequest } from "../../api/certificates/certificate-signing-request/schema.ts";
import { type KeyPairFiles, readKeyPair } from "../../auth/pki/key-pair.ts";
import { formatTime } from "../../schema/value/time.ts";
import type { ControllerDeps } from "../controller.ts";
import type { SigningAuthorities } from "../signing-authorities.ts";
import { hasCondition, requestText, runCertificateController } from "./certificate-controller.ts";
import {
  CLIENT_SIGNER,
  LEGACY_SIGNER,
  NODE_CLIENT_SIGNER,
  NODE_SERVING_SIGNER,
  validateForSigner,
} from "./validate-request.ts";

function authorityOf(signer: string, signing: SigningAuthorities): KeyPairFiles | undefined {
  switch (signer) {
    case CLIENT_SIGNER:
      return signing.clients;
    case NODE_CLIENT_SIGNER:
      return signing.nodeClients;
    case NODE_SERVING_SIGNER:
      return signing.nodeServing;
    case LEGACY_SIGNER:
      return signing.legacy;
    default:
      return undefined;
  }
}

export async function runCsrSigningController(deps: ControllerDeps): Promise<void> {
  const { client, clock, log, signing } = deps;
  if (signing === undefined) {
    log.warn("Not signing certificates: set --cluster-signing-cert-file and --cluster-signing-key-file");
    return;
  }
  await runCertificateController(deps, "sign", async (request, signal) => {
    const { spec, status } = request;
    if (!hasCondition(request, "Approved") || hasCondition(request, "Denied") || hasCondition(request, "Failed"))
      return;
    const files = authorityOf(spec.signerName, signing);
    if (files === undefined) return;
    const text = requestText(request);
    // Loaded on demand: requests are rare and the library is large.
    const { parseCertificateRequest, signCertificateRequest } = await import("../../auth/pki/certificate-signing.ts");
    const problem = validateForSigner(spec, parseCertificateRequest(text));
    const name = request.metadata?.name ?? "";
    if (problem !== undefined) {
      await client.updateStatus(
        certificateSigningRequestKind,
        withFailedCondition(request, problem, clock.now()),
        signal,
      );
      log.warn("Rejected approved certificate signing request", { name, problem });
      return;
    }
    const ca = await readKeyPair(files);
    if (ca === undefined) throw new Error(`Cannot sign: ${files.certFile} or ${files.keyFile} does not exist`);
    const requested = (spec.expirationSeconds ?? Number.POSITIVE_INFINITY) * 1000;
    const lifetimeMs = Math.min(requested, signing.lifetimeMs);
    const certificate = await signCertificateRequest(ca, text, {
      usages: spec.usages ?? [],
      lifetimeMs,
      now: clock.now(),
    });
    const signed = { ...request, status: { ...status, certificate: Buffer.from(certificate).toString("base64") } };
    await client.updateStatus(certificateSigningRequestKind, signed, signal);
    log.info("Signed certificate", { name, signer: spec.signerName });
  });
}

function withFailedCondition(
  request: CertificateSigningRequest,
  message: string,
  now: number,
): CertificateSigningRequest {
  const at = { lastUpdateTime: formatTime(now), lastTransitionTime: formatTime(now) };
  const condition = { type: "Failed", status: "True", reason: "SignerValidationFailure", message, ...at };
  return { ...request, status: { ...request.status, conditions: [...(request.status?.conditions ?? []), condition] } };
}
