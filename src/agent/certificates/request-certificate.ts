/** Creates a CertificateSigningRequest and waits until it is approved and signed. */

import { certificateSigningRequestKind as kind } from "../../api/certificates/certificate-signing-request/kind.ts";
import type { CertificateSigningRequest } from "../../api/certificates/certificate-signing-request/schema.ts";
import type { RequestSubject } from "../../auth/pki/certificate-signing.ts";
import type { KeyPair } from "../../auth/pki/key-pair.ts";
import type { Client } from "../../client/client.ts";

export interface CertificateRequestOptions {
  readonly client: Client;
  /** `kubernetes.io/kubelet-serving` */
  readonly signerName: string;
  readonly subject: RequestSubject;
  readonly usage: "client auth" | "server auth";
  readonly signal: AbortSignal;
}

/** Rejects when the request is denied, fails or is deleted, when a watch ends early, and when the signal aborts. */
export async function requestCertificate({
  client,
  signerName,
  subject,
  usage,
  signal,
}: CertificateRequestOptions): Promise<KeyPair> {
  // Key generation loads a library that an agent with a certificate does not need.
  const { createCertificateRequest } = await import("../../auth/pki/certificate-signing.ts");
  const { request, key } = await createCertificateRequest(subject);
  const spec = {
    request: Buffer.from(request).toString("base64"),
    signerName,
    usages: ["digital signature", usage],
  } as const;
  const made = await client.create(
    kind,
    { metadata: { generateName: "csr-" }, spec } as CertificateSigningRequest,
    signal,
  );
  const cert = await waitForCertificate(client, made.metadata?.name ?? "", signal);
  return { cert, key };
}

async function waitForCertificate(client: Client, name: string, signal: AbortSignal): Promise<string> {
  const query = { fieldSelector: `metadata.name=${name}` };
  const { items, resourceVersion } = await client.list(kind, query, signal);
  const [first] = items;
  if (first === undefined) throw new Error(`the request ${name} was deleted`);
  const already = readCertificate(first);
  if (already !== undefined) return already;
  const stop = new AbortController();
  const until = AbortSignal.any([signal, stop.signal]);
  try {
    for await (const event of client.watch(kind, { ...query, resourceVersion }, until)) {
      if (event.type === "BOOKMARK") continue;
      if (event.type === "DELETED") throw new Error(`the request ${name} was deleted`);
      const certificate = readCertificate(event.object);
      if (certificate !== undefined) return certificate;
    }
  } finally {
    stop.abort();
  }
  throw new Error(`the request ${name} is not signed yet`);
}

/** The certificate in PEM. Throws when the request was denied or failed. */
function readCertificate({ metadata, status }: CertificateSigningRequest): string | undefined {
  for (const { type, reason = "", message = "" } of status?.conditions ?? []) {
    if (type !== "Denied" && type !== "Failed") continue;
    throw new Error(
      `the request ${metadata?.name ?? ""} ${type === "Denied" ? "was denied" : "failed"}: ${reason} ${message}`,
    );
  }
  const certificate = status?.certificate ?? "";
  return certificate === "" ? undefined : Buffer.from(certificate, "base64").toString("utf8");
}
