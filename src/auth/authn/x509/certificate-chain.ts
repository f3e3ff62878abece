import { X509Certificate } from "node:crypto";
import { parseCertificateLimits } from "./certificate-extensions.ts";

/** A certificate with the properties that chain verification needs. */
export interface Certificate {
  readonly x509: X509Certificate;
  readonly notBefore: number;
  readonly notAfter: number;
  /** Extended key usages by OID; undefined allows any. */
  readonly usages: readonly string[] | undefined;
  readonly version: number;
  readonly pathLength: number | undefined;
  /** It has a critical extension that this verifier does not enforce, so it is never trusted. */
  readonly hasUnenforcedExtension: boolean;
}

const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";
const ANY_USAGE = "2.5.29.37.0";
/** Bounds the depth of a chain. */
const DEPTH_MAX = 8;

/** Throws for an invalid certificate. */
export function readCertificate(source: Uint8Array | string): Certificate {
  const x509 = new X509Certificate(source);
  const { version, pathLength, unenforced } = parseCertificateLimits(x509.raw);
  return {
    x509,
    notBefore: x509.validFromDate.getTime(),
    notAfter: x509.validToDate.getTime(),
    usages: x509.keyUsage as readonly string[] | undefined,
    version,
    pathLength,
    hasUnenforcedExtension: unenforced.length > 0,
  };
}

/** The certificates of a PEM bundle. Throws if it has none, or an invalid one. */
export function readBundle(pem: string): readonly Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0)
    throw new Error("Cannot read the certificate authorities: the bundle has no PEM certificate");
  return blocks.map((block) => readCertificate(block));
}

/**
 * Whether a chain leads from the client certificate over `intermediates` to a certificate of the bundle, all of them
 * valid at `now` and usable for client authentication.
 */
export function isTrusted(
  leaf: Certificate,
  intermediates: readonly Certificate[],
  roots: readonly Certificate[],
  now: number,
): boolean {
  return isUsable(leaf, now) && hasPathToRoot(leaf, 0, intermediates, roots, now);
}

function hasPathToRoot(
  subject: Certificate,
  depth: number,
  intermediates: readonly Certificate[],
  roots: readonly Certificate[],
  now: number,
): boolean {
  for (const root of roots) {
    const trusted = root.x509.fingerprint256 === subject.x509.fingerprint256 || isAnchor(root, subject, depth);
    if (trusted && isUsable(root, now)) return true;
  }
  if (depth >= DEPTH_MAX) return false;
  for (const issuer of intermediates) {
    if (!isUsable(issuer, now) || !isIssuer(issuer, subject, depth)) continue;
    // Each is used once on a path, so that certificates that sign each other terminate.
    const rest = intermediates.filter((other) => other !== issuer);
    if (hasPathToRoot(issuer, depth + 1, rest, roots, now)) return true;
  }
  return false;
}

/** A trusted certificate of version 1 or 2, which cannot have basic constraints, is an authority as well. */
function isAnchor(root: Certificate, subject: Certificate, depth: number): boolean {
  return root.version < 3 ? hasSigned(root, subject) : isIssuer(root, subject, depth);
}

/** `depth` intermediates are between the issuer and the client certificate. */
function isIssuer(issuer: Certificate, subject: Certificate, depth: number): boolean {
  return issuer.x509.ca && (issuer.pathLength ?? DEPTH_MAX) >= depth && hasSigned(issuer, subject);
}

function hasSigned(issuer: Certificate, subject: Certificate): boolean {
  return subject.x509.checkIssued(issuer.x509) && subject.x509.verify(issuer.x509.publicKey);
}

function isUsable(certificate: Certificate, now: number): boolean {
  const { notBefore, notAfter, usages, hasUnenforcedExtension } = certificate;
  if (hasUnenforcedExtension || now < notBefore || now > notAfter) return false;
  return usages === undefined || usages.length === 0 || usages.includes(CLIENT_AUTH) || usages.includes(ANY_USAGE);
}
