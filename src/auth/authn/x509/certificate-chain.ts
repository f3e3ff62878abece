import { X509Certificate } from "node:crypto";
import { certificateLimits } from "./certificate-extensions.ts";

/** A certificate with what is asked of it while chains are built. */
export interface Certificate {
  readonly x509: X509Certificate;
  readonly notBefore: number;
  readonly notAfter: number;
  /** Extended key usages by OID; undefined allows any. */
  readonly usages: readonly string[] | undefined;
  readonly pathLength: number | undefined;
  /** It demands something that is not checked here: never trusted. */
  readonly unenforced: boolean;
}

const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";
const ANY_USAGE = "2.5.29.37.0";
/** A chain of authorities longer than this is an attack. */
const DEPTH_MAX = 8;

/** Throws when it is no certificate. */
export function readCertificate(source: Uint8Array | string): Certificate {
  const x509 = new X509Certificate(source);
  const { pathLength, unenforced } = certificateLimits(x509.raw);
  return {
    x509,
    notBefore: x509.validFromDate.getTime(),
    notAfter: x509.validToDate.getTime(),
    usages: x509.keyUsage as readonly string[] | undefined,
    pathLength,
    unenforced: unenforced.length > 0,
  };
}

/** The certificates of a PEM bundle. Throws when it has none, or one that cannot be read. */
export function readBundle(pem: string): readonly Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0)
    throw new Error("Cannot read the certificate authorities: there is no certificate in PEM form");
  return blocks.map((block) => readCertificate(block));
}

/**
 * Whether a chain leads from the client's certificate over those it sent along to an authority of the bundle, every
 * certificate of it valid at `now` and good for client authentication.
 */
export function isTrusted(
  leaf: Certificate,
  intermediates: readonly Certificate[],
  roots: readonly Certificate[],
  now: number,
): boolean {
  return usable(leaf, now) && climbs(leaf, 0, intermediates, roots, now);
}

function climbs(
  subject: Certificate,
  depth: number,
  intermediates: readonly Certificate[],
  roots: readonly Certificate[],
  now: number,
): boolean {
  for (const root of roots) {
    const trusted = root.x509.fingerprint256 === subject.x509.fingerprint256 || issued(root, subject, depth);
    if (trusted && usable(root, now)) return true;
  }
  if (depth >= DEPTH_MAX) return false;
  for (const issuer of intermediates) {
    if (!usable(issuer, now) || !issued(issuer, subject, depth)) continue;
    // Each is tried once on a path, so that certificates which sign each other end.
    const rest = intermediates.filter((other) => other !== issuer);
    if (climbs(issuer, depth + 1, rest, roots, now)) return true;
  }
  return false;
}

/** `depth` authorities stand between the issuer and the client's certificate. */
function issued(issuer: Certificate, subject: Certificate, depth: number): boolean {
  if (!issuer.x509.ca || (issuer.pathLength ?? DEPTH_MAX) < depth) return false;
  return subject.x509.checkIssued(issuer.x509) && subject.x509.verify(issuer.x509.publicKey);
}

function usable(certificate: Certificate, now: number): boolean {
  const { notBefore, notAfter, usages, unenforced } = certificate;
  if (unenforced || now < notBefore || now > notAfter) return false;
  return usages === undefined || usages.length === 0 || usages.includes(CLIENT_AUTH) || usages.includes(ANY_USAGE);
}
