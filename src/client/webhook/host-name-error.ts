/** The texts of Go's `x509` for a certificate of another host. */
import { isIP } from "node:net";
import type { PeerCertificate } from "node:tls";
import { formatIp, parseIp } from "../../std/net/ip.ts";

interface Names extends Pick<PeerCertificate, "subject"> {
  readonly subjectaltname?: string | undefined;
}

/** `host`: without brackets. */
export function hostNameErrorText(certificate: Names | undefined, host: string): string {
  const names = (certificate?.subjectaltname ?? "").split(", ").filter((name) => name !== "");
  if (names.length === 0 && String(certificate?.subject.CN ?? "").toLowerCase() === host.toLowerCase()) {
    return "certificate relies on legacy Common Name field, use SANs instead";
  }
  const isAddress = isIP(host) !== 0;
  const kind = isAddress ? "IP Address:" : "DNS:";
  const valid = names
    .filter((name) => name.startsWith(kind))
    .map((name) => name.slice(kind.length))
    .map((name) => (isAddress ? canonical(name) : name));
  if (valid.length > 0) return `certificate is valid for ${valid.join(", ")}, not ${host}`;
  return isAddress
    ? `cannot validate certificate for ${host} because it doesn't contain any IP SANs`
    : `certificate is not valid for any names, but wanted to match ${host}`;
}

/** OpenSSL writes all groups of an IPv6 address. */
function canonical(address: string): string {
  const parsed = parseIp(address);
  return parsed === undefined ? address : formatIp(parsed);
}
