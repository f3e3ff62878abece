/**
 * Checks that a certificate and a private key, both in PEM, belong together. The messages are those of Go's crypto/tls.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";

// The body excludes BEGIN: an unterminated block would otherwise be scanned to the end of the text for each match.
const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----(?:(?!-----BEGIN )[\s\S])+?-----END \1-----/g;

/** The error message; undefined for a valid pair. */
export function keyPairProblem(certificates: string, key: string): string | undefined {
  const found = [...certificates.matchAll(BLOCK)];
  const certificate = found.find(([, type]) => type === "CERTIFICATE");
  if (certificate === undefined) return certificateProblem(found.map(([, type = ""]) => type));
  const keys = [...key.matchAll(BLOCK)];
  const block = keys.find(([, type = ""]) => type.endsWith("PRIVATE KEY"));
  if (block === undefined) return keyProblem(keys.map(([, type = ""]) => type));
  let leaf: X509Certificate;
  try {
    leaf = new X509Certificate(certificate[0]);
  } catch {
    return "x509: malformed certificate";
  }
  try {
    const privateKey = createPrivateKey(block[0]);
    if (leaf.checkPrivateKey(privateKey)) return undefined;
    const same = leaf.publicKey.asymmetricKeyType === privateKey.asymmetricKeyType;
    return same ? "tls: private key does not match public key" : "tls: private key type does not match public key type";
  } catch {
    return "tls: failed to parse private key";
  }
}

function certificateProblem(types: readonly string[]): string {
  if (types.length === 0) return "tls: failed to find any PEM data in certificate input";
  if (types.length === 1 && types[0]?.endsWith("PRIVATE KEY")) {
    return "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched";
  }
  return `tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types: [${types.join(" ")}]`;
}

function keyProblem(types: readonly string[]): string {
  if (types.length === 0) return "tls: failed to find any PEM data in key input";
  if (types.length === 1 && types[0] === "CERTIFICATE") {
    return "tls: found a certificate rather than a key in the PEM for the private key";
  }
  return `tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the following types: [${types.join(" ")}]`;
}
