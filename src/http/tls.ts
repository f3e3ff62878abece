/** Options of TLS, and what a connection tells of its client. */
import { constants } from "node:crypto";
import type { Socket } from "node:net";
import type { DetailedPeerCertificate, PeerCertificate, TLSSocket } from "node:tls";
import type { Peer } from "./message.ts";

/** Certificates and keys are PEM text. */
export interface TlsOptions {
  /** Leaf first, then intermediates. */
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** The authorities named to clients that are asked for a certificate. Verifying is the authenticator's business. */
  readonly ca?: string | Buffer | undefined;
  /** Ask for a client certificate; a client without one, or with a bad one, is still let in. */
  readonly requestCert?: boolean | undefined;
  /** TLSv1.2 when absent. */
  readonly minVersion?: "TLSv1" | "TLSv1.1" | "TLSv1.2" | "TLSv1.3" | undefined;
  /** OpenSSL's names, separated by colons; Node's default when absent. */
  readonly ciphers?: string | undefined;
}

/** For `createServer` and `setSecureContext`. */
export function secureOptions(tls: TlsOptions) {
  return {
    cert: tls.cert,
    key: tls.key,
    minVersion: tls.minVersion ?? ("TLSv1.2" as const),
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls.ciphers === undefined ? {} : { ciphers: tls.ciphers }),
    requestCert: tls.requestCert === true,
    rejectUnauthorized: false,
    // A resumed session knows the client's leaf certificate but not its intermediates: without tickets there is none.
    ...(tls.requestCert === true ? { secureOptions: constants.SSL_OP_NO_TICKET } : {}),
  };
}

export function plainPeer(socket: Socket): Peer {
  return {
    address: socket.remoteAddress ?? "",
    port: socket.remotePort ?? 0,
    encrypted: false,
    certificates: [],
  };
}

/** More than any real chain has; a longer one is cut, and fails to verify. */
const CHAIN_MAX = 10;

/** The chain the client sent, leaf first; possibly with an authority of ours at its end. */
export function certificatesOf(socket: TLSSocket): readonly Uint8Array[] {
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
