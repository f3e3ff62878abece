/** TLS options, and the client's end of a connection. */
import { constants } from "node:crypto";
import type { Socket } from "node:net";
import { DEFAULT_CIPHERS, type DetailedPeerCertificate, type PeerCertificate, type TLSSocket } from "node:tls";
import { withoutIpv4Mapping } from "../../std/net/ip.ts";
import type { Peer } from "../message.ts";

/** A certificate (leaf first, then intermediates) and its key, both PEM text. */
export interface TlsPair {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

/** A certificate for certain server names (`--tls-sni-cert-key`). */
export interface NamedTlsPair extends TlsPair {
  /** Host names, also `*.example.com`, and addresses; empty: those in the certificate. */
  readonly names: readonly string[];
}

/** The options of a listener that may change while it runs. */
export interface TlsCertificates extends TlsPair {
  /** The CAs sent with a certificate request. The authenticator verifies client certificates. */
  readonly ca?: string | Buffer | undefined;
  /** `server-names.ts` chooses the one for a connection. */
  readonly named?: readonly NamedTlsPair[] | undefined;
}

export interface TlsOptions extends TlsCertificates {
  /** Request a client certificate; connections without a valid one are accepted. */
  readonly requestCert?: boolean | undefined;
  /** TLSv1.2 when absent. */
  readonly minVersion?: "TLSv1" | "TLSv1.1" | "TLSv1.2" | "TLSv1.3" | undefined;
  /** OpenSSL's names, separated by colons; Node's default when absent. */
  readonly ciphers?: string | undefined;
}

/** For `createServer`, `setSecureContext` and `createSecureContext`. */
export function toSecureOptions(tls: TlsOptions, { cert, key }: TlsPair = tls) {
  const ciphers = toCiphers(tls);
  return {
    cert,
    key,
    minVersion: tls.minVersion ?? ("TLSv1.2" as const),
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(ciphers === undefined ? {} : { ciphers }),
    requestCert: tls.requestCert === true,
    rejectUnauthorized: false,
    // A resumed session lacks the intermediates of the client's certificate; without tickets there is no resumption.
    ...(tls.requestCert === true ? { secureOptions: constants.SSL_OP_NO_TICKET } : {}),
  };
}

/** OpenSSL supports TLS 1.0 and 1.1 at security level 0 only. */
function toCiphers({ ciphers, minVersion }: TlsOptions): string | undefined {
  if (minVersion !== "TLSv1" && minVersion !== "TLSv1.1") return ciphers;
  return `${ciphers ?? DEFAULT_CIPHERS}:@SECLEVEL=0`;
}

export function plainPeer(socket: Socket): Peer {
  return {
    address: withoutIpv4Mapping(socket.remoteAddress ?? ""),
    port: socket.remotePort ?? 0,
    encrypted: false,
    certificates: [],
    protocol: "http/1.1",
  };
}

export function securePeer(socket: TLSSocket): Peer {
  return {
    ...plainPeer(socket),
    encrypted: true,
    certificates: peerCertificates(socket),
    protocol: socket.alpnProtocol === "h2" ? "h2" : "http/1.1",
  };
}

/** More than real chains have; a longer one is truncated, and fails verification. */
const CHAIN_MAX = 10;

/** The chain that the client sent, leaf first; Node may append a CA of ours. */
function peerCertificates(socket: TLSSocket): readonly Uint8Array[] {
  const chain: Uint8Array[] = [];
  const seen = new Set<string>();
  let certificate: PeerCertificate | DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  // Node returns an empty object for no certificate, and a self-signed one is its own issuer.
  while (certificate?.raw !== undefined && !seen.has(certificate.fingerprint256) && chain.length < CHAIN_MAX) {
    seen.add(certificate.fingerprint256);
    chain.push(certificate.raw);
    certificate = "issuerCertificate" in certificate ? certificate.issuerCertificate : undefined;
  }
  return chain;
}
