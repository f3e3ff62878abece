/**
 * Gives clients access to the listener of a node without API server: a connection file for kubectl, a serving
 * certificate and a token. They stay the same over restarts; new ones are made when the files are deleted.
 */
import { randomBytes } from "node:crypto";
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { isReusable, type KeyPair, readKeyPair, writeKeyPair } from "../../auth/pki/key-pair.ts";
import { type ClusterAccess, loadKubeconfig, writeKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";

export interface StandaloneAccessOptions {
  readonly directory: string;
  readonly nodeName: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

export interface StandaloneAccess {
  /** The connection file. */
  readonly path: string;
  readonly serving: KeyPair;
  readonly token: string;
  /** The previous port of the listener; 0 when there was none. */
  readonly port: number;
  /** Writes the connection file, mode 0600, for a listener at this port. */
  publish(port: number): Promise<void>;
}

export const LOOPBACK = "127.0.0.1";
const NAMES = [LOOPBACK, "localhost"];
/**
 * Certificates are valid from an hour before they are issued: these from 1970 on. Only the connection file refers to
 * them, and some hosts start without a clock.
 */
const ISSUED_MS = 3_600_000;
const CERTIFICATE_DAYS = 36_525;
const RENEW_DAYS = 30;
const TOKEN_BYTES = 32;

/** Rejects when the directory cannot be used. */
export async function openAccess({ directory, nodeName, now }: StandaloneAccessOptions): Promise<StandaloneAccess> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await chmod(directory, 0o700);
  const path = join(directory, "svcconfig");
  const files = { certFile: join(directory, "serving.crt"), keyFile: join(directory, "serving.key") };
  const previous: Partial<ClusterAccess> = await loadKubeconfig(path).catch(() => ({}));
  const kept = await readKeyPair(files).catch(() => undefined);
  let { ca } = previous;
  let serving = kept;
  if (serving === undefined || ca === undefined || !isReusable(serving, ca, NAMES, now, RENEW_DAYS)) {
    ({ ca, serving } = await createServingCertificate(nodeName));
    await writeKeyPair(files, serving);
  }
  const token = previous.token ?? randomBytes(TOKEN_BYTES).toString("base64url");
  return {
    path,
    serving,
    token,
    port: previous.server === undefined ? 0 : Number(new URL(previous.server).port),
    publish: (port) =>
      writeKubeconfig(path, { server: `https://${LOOPBACK}:${port}`, cluster: nodeName, user: "reader", ca, token }),
  };
}

async function createServingCertificate(nodeName: string): Promise<{ readonly ca: string; readonly serving: KeyPair }> {
  const { issueCertificate, createCa } = await import("../../auth/pki/certificate-authority.ts");
  // The CA's key is not kept: it signs this one certificate.
  const ca = await createCa(`${nodeName}-standalone-ca`, CERTIFICATE_DAYS, ISSUED_MS);
  const serving = await issueCertificate(
    ca,
    { commonName: nodeName, alternativeNames: NAMES, usages: ["server"], days: CERTIFICATE_DAYS },
    ISSUED_MS,
  );
  return { ca: ca.cert, serving };
}
