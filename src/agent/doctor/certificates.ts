/** Certificates and keys on disk. */
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { type Finding, finding, findingOf } from "./finding.ts";
import type { FileStat, HostReader } from "./host-reader.ts";
import type { CertificateSubject } from "./subject.ts";

export interface CertificateFacts {
  /** Undefined: the file does not exist or cannot be read. */
  readonly pem: string | undefined;
  readonly ca: string | undefined;
  /** Undefined: it does not exist. */
  readonly key: FileStat | undefined;
}

const MS_PER_DAY = 86_400_000;
/** The last part of its validity in which a certificate should have been renewed. */
const RENEWED_BEFORE = 0.1;

export function checkCertificate(
  subject: CertificateSubject,
  facts: CertificateFacts,
  now: number,
): readonly Finding[] {
  const { name, certFile, isCreated } = subject;
  const { pem, ca } = facts;
  const keyMode = checkKeyMode(subject, facts);
  if (pem === undefined) {
    const absent = isCreated
      ? finding("certificate-present", "ok", `${name}: not yet; ${certFile} is created at the start`)
      : finding("certificate-present", "error", `${name}: ${certFile} does not exist, or cannot be read`);
    return [absent, ...keyMode];
  }
  const certificate = parse(pem);
  if (certificate === undefined) {
    return [finding("certificate-present", "error", `${name}: ${certFile} has no certificate`), ...keyMode];
  }
  return [
    finding("certificate-present", "ok", `${name}: ${certFile}`),
    checkValidity(name, certificate, now),
    ...checkChain(subject, certificate, ca),
    ...checkNames(subject, certificate),
    ...keyMode,
  ];
}

function parse(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

function checkValidity(name: string, certificate: X509Certificate, now: number): Finding {
  const id = "certificate-valid";
  const [from, to] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()];
  const day = (time: number): string => new Date(time).toISOString().slice(0, 10);
  if (now < from) return finding(id, "error", `${name}: valid from ${day(from)}, which is in the future`);
  if (now >= to) return finding(id, "error", `${name}: expired on ${day(to)}`);
  const days = Math.floor((to - now) / MS_PER_DAY);
  const isShort = to - now < (to - from) * RENEWED_BEFORE && days < 30;
  return finding(id, isShort ? "warning" : "ok", `${name}: expires on ${day(to)}, in ${days} days`);
}

function checkChain(
  { name, caFile }: CertificateSubject,
  certificate: X509Certificate,
  ca: string | undefined,
): Finding[] {
  if (caFile === undefined || certificate.subject === certificate.issuer) return [];
  if (ca === undefined) return [finding("certificate-chain", "error", `${name}: the CA ${caFile} cannot be read`)];
  const blocks = ca.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  const isSigned = blocks.some((block) => {
    const authority = parse(block);
    return authority !== undefined && certificate.verify(authority.publicKey);
  });
  return [
    findingOf(
      "certificate-chain",
      `${name}: signed by ${caFile}`,
      isSigned ? undefined : `${name}: not signed by ${caFile}`,
    ),
  ];
}

function checkNames({ name, names }: CertificateSubject, certificate: X509Certificate): Finding[] {
  if (names.length === 0) return [];
  const missing = names.filter((each) =>
    isIP(each) === 0
      ? certificate.checkHost(each, { subject: "never" }) === undefined
      : certificate.checkIP(each) === undefined,
  );
  const problem = missing.length === 0 ? undefined : `${name}: not valid for ${missing.join(", ")}`;
  return [findingOf("certificate-names", `${name}: ${names.join(", ")}`, problem, "warning")];
}

function checkKeyMode({ name, keyFile }: CertificateSubject, { key }: CertificateFacts): Finding[] {
  if (keyFile === undefined || key === undefined) return [];
  const mode = key.mode.toString(8).padStart(4, "0");
  const isOpen = (key.mode & 0o077) !== 0;
  return [findingOf("key-mode", `${name}: ${mode}`, isOpen ? `${keyFile} has mode ${mode}` : undefined)];
}

export async function readCertificateFacts(
  host: HostReader,
  { certFile, pem, keyFile, caFile }: CertificateSubject,
): Promise<CertificateFacts> {
  return {
    pem: pem ?? (await host.readText(certFile)),
    ca: caFile === undefined ? undefined : await host.readText(caFile),
    key: keyFile === undefined ? undefined : await host.stat(keyFile),
  };
}
