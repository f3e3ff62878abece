/** Options of TLS, and what a connection tells of its client. */
import { constants } from "node:crypto";
import type { Socket } from "node:net";
import { DEFAULT_CIPHERS, type DetailedPeerCertificate, type PeerCertificate, type TLSSocket } from "node:tls";
import type { Peer } from "../message.ts";

/** A certificate (leaf first, then intermediates) and its key, both PEM text. */
export interface TlsPair {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

/** A certificate for connections that ask for other names. */
export interface NamedTlsPair extends TlsPair {
  /** Host names, `*.example.com` among them, and addresses; empty: those of the certificate. */
  readonly names: readonly string[];
}

/** What a listener shows of itself: the part of its options that may be exchanged while it runs. */
export interface TlsCertificates extends TlsPair {
  /** The authorities named to clients that are asked for a certificate. Verifying is the authenticator's business. */
  readonly ca?: string | Buffer | undefined;
  /** `sni.ts` says which one a connection gets. */
  readonly named?: readonly NamedTlsPair[] | undefined;
}

export interface TlsOptions extends TlsCertificates {
  /** Ask for a client certificate; a client without one, or with a bad one, is still let in. */
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
    // A resumed session knows the client's leaf certificate but not its intermediates: without tickets there is none.
    ...(tls.requestCert === true ? { secureOptions: constants.SSL_OP_NO_TICKET } : {}),
  };
}

/** OpenSSL talks the oldest versions only where its least level of security is asked for. */
function toCiphers({ ciphers, minVersion }: TlsOptions): string | undefined {
  if (minVersion !== "TLSv1" && minVersion !== "TLSv1.1") return ciphers;
  return `${ciphers ?? DEFAULT_CIPHERS}:@SECLEVEL=0`;
}

export function plainPeer(socket: Socket): Peer {
  return {
    address: socket.remoteAddress ?? "",
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

/** More than any real chain has; a longer one is cut, and fails to verify. */
const CHAIN_MAX = 10;

/** The chain the client sent, leaf first; possibly with an authority of ours at its end. */
function peerCertificates(socket: TLSSocket): readonly Uint8Array[] {
  const chain: Uint8Array[] = [];
  const seen = new Set<string>();
  let certificate: PeerCertificate | DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  // Node returns an empty object for no certificate, and lets a self-signed one be its own issuer.
  while (certificate?.raw !== undefined && !seen.has(certificate.fingerprint256) && chain.length < CHAIN_MAX) {
    seen.add(certificate.fingerprint256);
    chain.push(certificate.raw);
    certificate = "issuerCertificate" in certificate ? certificate.issuerCertificate : undefined;
  }
  return chain;
}
