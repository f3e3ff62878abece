import { isIP } from "node:net";
import { checkServerIdentity, connect, type TLSSocket } from "node:tls";
import type { Clock } from "../../std/time/clock.ts";

export interface TlsIdentity {
  readonly ca?: string | Buffer | undefined;
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  /** The name the server's certificate must carry; the host's when absent. */
  readonly tlsServerName?: string | undefined;
  /** Disables the verification of the server's certificate. */
  readonly insecure?: boolean | undefined;
}

const DIAL_TIMEOUT_MS = 30_000;

/** Options of TLS for one server; its certificate is verified unless the identity is insecure. */
export function tlsOptions(url: URL, identity: TlsIdentity) {
  const host = hostOf(url);
  const name = identity.tlsServerName ?? host;
  return {
    host,
    port: portOf(url),
    ...(identity.ca === undefined ? {} : { ca: identity.ca }),
    ...(identity.cert === undefined ? {} : { cert: identity.cert }),
    ...(identity.key === undefined ? {} : { key: identity.key }),
    ...(identity.insecure === true ? { rejectUnauthorized: false } : {}),
    // Server name indication takes names only; an address is checked all the same.
    ...(isIP(name) === 0 ? { servername: name } : {}),
    // Only if needed: HTTPS agents do not reuse connections with a custom check.
    ...(isIP(name) === 0 || name === host ? {} : { checkServerIdentity: verifyAs(name) }),
  };
}

function verifyAs(name: string): typeof checkServerIdentity {
  return (_, certificate) => checkServerIdentity(name, certificate);
}

/** Resolves with a TLS connection after its handshake; `alpnProtocol` is the negotiated protocol. */
export async function dial(url: URL, identity: TlsIdentity, clock: Clock): Promise<TLSSocket> {
  return await waitForHandshake(
    url,
    connect({ ...tlsOptions(url, identity), ALPNProtocols: ["h2", "http/1.1"] }),
    clock,
  );
}

function waitForHandshake(url: URL, socket: TLSSocket, clock: Clock): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const timer = clock.timer(DIAL_TIMEOUT_MS, () => {
      socket.destroy(new Error(`Cannot connect to ${url.host}: no response in ${DIAL_TIMEOUT_MS / 1000} s`));
    });
    const failed = (error: Error): void => {
      timer.cancel();
      reject(error);
    };
    socket.setNoDelay(true);
    socket.once("error", failed);
    // With TLS 1.3 a server rejects a client certificate after the handshake: the session gets that error.
    socket.once("secureConnect", () => {
      timer.cancel();
      socket.off("error", failed);
      resolve(socket);
    });
  });
}

export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}

export function portOf(url: URL): number {
  if (url.port !== "") return Number(url.port);
  return url.protocol === "http:" ? 80 : 443;
}
