/** The CA of the serving certificate, which clients in pods must trust. */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ServingConfig } from "../config/config.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** PEM; undefined when neither the served chain nor the CA bundle `others` contains the CA. */
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
