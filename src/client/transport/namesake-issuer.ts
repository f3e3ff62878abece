/**
 * Servers whose certificate has the same subject as the CA that signed it, such as webhooks of Knative and Tekton. Go's
 * libraries verify it by the signature. OpenSSL takes it for self-signed, as it has no authority key identifier: these
 * connections are opened once more and verified here, before anything is sent.
 */
import { X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import { checkServerIdentity, TLSSocket } from "node:tls";
import type { buildConnector } from "undici";
import { systemClock } from "../../std/time/clock.ts";
import { type Connector, connectThrough } from "./connector.ts";

const SELF_SIGNED = "DEPTH_ZERO_SELF_SIGNED_CERT";
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";
const ANY_USAGE = "2.5.29.37.0";
/** DER of the identifier 2.5.29.30. */
const NAME_CONSTRAINTS = Buffer.from([0x06, 0x03, 0x55, 0x1d, 0x1e]);

/** A function for undici's option `connect`. `tls`: the options of TLS, with undici's own; `ca` is PEM text. */
export async function connectVerified(
  connector: Connector | undefined,
  tls: buildConnector.BuildOptions,
  ca: string | undefined,
): Promise<buildConnector.connector> {
  const { buildConnector } = await import("undici");
  const open = async (options: buildConnector.BuildOptions): Promise<buildConnector.connector> =>
    connector === undefined ? buildConnector(options) : await connectThrough(connector, options);
  const verified = await open(tls);
  if (ca === undefined) return verified;
  const unverified = await open({ ...tls, rejectUnauthorized: false, maxCachedSessions: 0 });
  return (options, callback) =>
    verified(options, (...result) => {
      const [failure] = result;
      if (!isTakenForSelfSigned(failure)) return callback(...result);
      unverified(options, (...second) => {
        const [error, socket] = second;
        if (error !== null) return callback(error, null);
        const name = ("servername" in tls ? tls.servername : undefined) ?? options.servername ?? options.hostname;
        const check = ("checkServerIdentity" in tls ? tls.checkServerIdentity : undefined) ?? checkServerIdentity;
        if (!isSignedByNamesake(socket, ca)) {
          socket.destroy();
          return callback(...result);
        }
        const problem = check(name, (socket as TLSSocket).getPeerCertificate());
        if (problem === undefined) return callback(null, socket);
        socket.destroy();
        callback(problem, null);
      });
    });
}

/** Whether the verification failed with the error of such certificates. */
export function isTakenForSelfSigned(error: Error | null): boolean {
  return (error as NodeJS.ErrnoException | null)?.code === SELF_SIGNED;
}

/** Verifies the certificate of an open connection, but for the server's name. */
export function isSignedByNamesake(socket: Socket, ca: string): boolean {
  const leaf = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  if (leaf === undefined || leaf.subject !== leaf.issuer || !isValidForServers(leaf)) return false;
  return [...ca.matchAll(PEM)].some(([text]) => {
    const authority = parseCertificate(text);
    if (authority === undefined) return false;
    const mayIssue = authority.ca && isValidForServers(authority) && !authority.raw.includes(NAME_CONSTRAINTS);
    return mayIssue && authority.subject === leaf.issuer && leaf.verify(authority.publicKey);
  });
}

/** OpenSSL ignores what it cannot parse after the first certificate of a bundle. */
function parseCertificate(text: string): X509Certificate | undefined {
  try {
    return new X509Certificate(text);
  } catch {
    return undefined;
  }
}

/** Now, and by its extended key usages if it has some. */
function isValidForServers({ validFromDate, validToDate, keyUsage }: X509Certificate): boolean {
  const now = systemClock.now();
  if (now < validFromDate.getTime() || now > validToDate.getTime()) return false;
  const usages = keyUsage as readonly string[] | undefined;
  return usages === undefined || usages.includes(SERVER_AUTH) || usages.includes(ANY_USAGE);
}
