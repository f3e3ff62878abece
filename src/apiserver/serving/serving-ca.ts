/** The authority behind the certificate that the server shows: what pods must trust to talk to it. */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ServingConfig } from "../config/config.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** PEM; undefined when neither the served chain nor `others` has it. `others` is a bundle of known authorities. */
export async function servingCa(
  { certificate, certDir }: ServingConfig,
  others: string | undefined,
): Promise<string | undefined> {
  const path = certificate?.certFile ?? join(certDir, "apiserver.crt");
  const chain = await readFile(path, "utf8").catch(() => "");
  return rootOf(chain, others ?? "");
}

export function rootOf(chain: string, others: string): string | undefined {
  const served = certificatesOf(chain);
  const roots = [...served, ...certificatesOf(others)].filter((one) => isIssuedBy(one, one));
  const root = roots.find((candidate) => served.some((one) => isIssuedBy(one, candidate)));
  return root === undefined ? undefined : `${root.toString().trim()}\n`;
}

function certificatesOf(pem: string): readonly X509Certificate[] {
  return (pem.match(CERTIFICATE) ?? []).flatMap((block) => {
    try {
      return [new X509Certificate(block)];
    } catch {
      return [];
    }
  });
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}
