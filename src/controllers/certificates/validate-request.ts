/** Validation of certificate signing requests for Kubernetes' signers. */
import type { CertificateSigningRequestSpec } from "../../api/certificates/certificate-signing-request/schema.ts";
import type { ParsedRequest } from "../../auth/pki/certificate-signing.ts";
import { NODE_USER_PREFIX, NODES } from "../../auth/user.ts";

export const CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client";
export const NODE_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet";
export const NODE_SERVING_SIGNER = "kubernetes.io/kubelet-serving";
export const LEGACY_SIGNER = "kubernetes.io/legacy-unknown";

const CLIENT_AUTH = "client auth";
const CLIENT_USAGES = ["digital signature", CLIENT_AUTH];
const SERVING_USAGES = ["digital signature", "server auth"];
/** RSA keys need it, ECDSA keys cannot have it. */
const OPTIONAL_USAGE = "key encipherment";

/** Why the request is not a valid kubelet client certificate request. */
export function validateNodeClientRequest(
  { organizations, commonName, dnsNames, ips, emails, uris }: ParsedRequest,
  usages: readonly string[],
): string | undefined {
  if (organizations.length !== 1 || organizations[0] !== NODES) {
    return `subject organization is not ${NODES}`;
  }
  if (dnsNames.length > 0) return "DNS subjectAltNames are not allowed";
  if (emails.length > 0) return "Email subjectAltNames are not allowed";
  if (ips.length > 0) return "IP subjectAltNames are not allowed";
  if (uris.length > 0) return "URI subjectAltNames are not allowed";
  if (!commonName.startsWith(NODE_USER_PREFIX)) return `subject common name does not begin with ${NODE_USER_PREFIX}`;
  return hasExactUsages(usages, CLIENT_USAGES) ? undefined : usageMismatch(CLIENT_USAGES);
}

/** Why the request is not a valid kubelet serving certificate request. */
export function validateNodeServingRequest(
  { organizations, commonName, dnsNames, ips, emails, uris }: ParsedRequest,
  usages: readonly string[],
): string | undefined {
  if (organizations.length !== 1 || organizations[0] !== NODES) {
    return `subject organization is not ${NODES}`;
  }
  if (dnsNames.length === 0 && ips.length === 0) return "DNS or IP subjectAltName is required";
  if (emails.length > 0) return "Email subjectAltNames are not allowed";
  if (uris.length > 0) return "URI subjectAltNames are not allowed";
  if (!hasExactUsages(usages, SERVING_USAGES)) return usageMismatch(SERVING_USAGES);
  if (!commonName.startsWith(NODE_USER_PREFIX)) return `subject common name does not begin with ${NODE_USER_PREFIX}`;
  return undefined;
}

/** Why the signer rejects an approved request. Undefined for other signers. */
export function validateForSigner(
  { signerName, usages = [] }: CertificateSigningRequestSpec,
  requested: ParsedRequest,
): string | undefined {
  switch (signerName) {
    case NODE_CLIENT_SIGNER:
      return validateNodeClientRequest(requested, usages);
    case NODE_SERVING_SIGNER:
      return validateNodeServingRequest(requested, usages);
    case CLIENT_SIGNER:
      return validateClientUsages(usages);
    default:
      return undefined;
  }
}

function validateClientUsages(usages: readonly string[]): string | undefined {
  const invalid = usages.find((usage) => !CLIENT_USAGES.includes(usage) && usage !== OPTIONAL_USAGE);
  if (invalid !== undefined) return `invalid usage for client certificate: ${invalid}`;
  return usages.includes(CLIENT_AUTH) ? undefined : `missing required usage for client certificate: ${CLIENT_AUTH}`;
}

/** Kubernetes' words. */
function usageMismatch(expected: readonly string[]): string {
  return `usages did not match [${[...expected, OPTIONAL_USAGE].sort().join(" ")}]`;
}

function hasExactUsages(usages: readonly string[], expected: readonly string[]): boolean {
  const found = new Set(usages.filter((usage) => usage !== OPTIONAL_USAGE));
  return found.size === expected.length && expected.every((usage) => found.has(usage));
}
