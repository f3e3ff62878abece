/**
 * The cluster's keys, which every start creates or checks: a certificate that is missing, expires soon or lacks a name
 * of this host is issued again. CAs keep their keys, so that svcconfigs stay valid. Certificates are valid from 1970
 * on, since some hosts start without a clock.
 *
 *     ca            signs users and the API server; the API server's --client-ca-file
 *     agent-ca      signs both ends of connections from the API server to agents, and nothing else
 *     front-proxy-ca  signs the certificate with which the API server sends users' names to extension servers
 *
 * The node's certificates are signed when its agent requests them (`node-identity.ts`).
 */
import { X509Certificate } from "node:crypto";
import { chmod, mkdir, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { CertificateOptions } from "../../auth/pki/certificate-authority.ts";
import { isReusable, type KeyPair, type KeyPairFiles, readKeyPair, writeKeyPair } from "../../auth/pki/key-pair.ts";
import { MASTERS } from "../../auth/user.ts";

export interface PkiOptions {
  readonly directory: string;
  /** Addresses and names at which clients reach the API server. */
  readonly serverNames: readonly string[];
  /** Milliseconds since 1970. */
  readonly now: number;
}

export interface Pki {
  /** PEM. */
  readonly ca: string;
  readonly caFile: string;
  readonly agentCa: string;
  readonly agentCaFile: string;
  /** The two CAs. */
  readonly authority: KeyPairFiles;
  readonly agentAuthority: KeyPairFiles;
  readonly apiServer: KeyPairFiles;
  /** The client certificate of the API server for agents. */
  readonly agentClient: KeyPairFiles;
  /** The CA whose certificates extension servers and the API server trust to send users' names in headers. */
  readonly frontProxyCaFile: string;
  /** The client certificate of the API server for extension servers and webhooks. */
  readonly frontProxyClient: KeyPairFiles;
  readonly admin: KeyPair;
  /** Names of the certificates that were issued. */
  readonly issued: readonly string[];
  /** Files whose permissions were restricted to their owner. */
  readonly restricted: readonly string[];
}

/** The common name of the certificate for extension servers. */
export const FRONT_PROXY = "front-proxy-client";

const CA_DAYS = 3650;
const LEAF_DAYS = 365;
/** A leaf is replaced when less than this is left, so that it does not expire on a host that starts once a quarter. */
const LEAF_RENEW_DAYS = 120;
const CA_RENEW_DAYS = LEAF_DAYS;
const NOT_BEFORE_MS = 0;
/** An earlier time means that the clock is not set. */
const CLOCK_MIN_MS = Date.UTC(2026, 10, 1);

export async function ensurePki(options: PkiOptions): Promise<Pki> {
  const { directory, serverNames } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const tightened = await restrictPermissions(directory);
  const keys = new KeyDirectory(options);
  const ca = await keys.authority("ca", "svc-ca");
  const agentCa = await keys.authority("agent-ca", "svc-agent-ca");
  const admin = await keys.leaf("admin", ca, {
    commonName: "svc-admin",
    organizations: [MASTERS],
    usages: ["client"],
  });
  await keys.leaf("apiserver", ca, { commonName: "svc-apiserver", usages: ["server"], alternativeNames: serverNames });
  // Agents authorize the API server with itself, where the group may do everything.
  await keys.leaf("agent-client", agentCa, {
    commonName: "svc-apiserver-agent-client",
    organizations: [MASTERS],
    usages: ["client"],
  });
  const frontProxyCa = await keys.authority("front-proxy-ca", "svc-front-proxy-ca");
  await keys.leaf("front-proxy-client", frontProxyCa, { commonName: FRONT_PROXY, usages: ["client"] });
  return {
    ca: ca.cert,
    caFile: keys.files("ca").certFile,
    agentCa: agentCa.cert,
    agentCaFile: keys.files("agent-ca").certFile,
    authority: keys.files("ca"),
    agentAuthority: keys.files("agent-ca"),
    apiServer: keys.files("apiserver"),
    agentClient: keys.files("agent-client"),
    frontProxyCaFile: keys.files("front-proxy-ca").certFile,
    frontProxyClient: keys.files("front-proxy-client"),
    admin,
    issued: keys.issued,
    restricted: tightened,
  };
}

/** Restricts keys to their owner: copies and backups may change their modes. */
async function restrictPermissions(directory: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const path of [directory, ...(await readdir(directory)).map((name) => join(directory, name))]) {
    const { mode } = await stat(path);
    const isSecret = path === directory || path.endsWith(".key");
    if (!isSecret || (mode & 0o077) === 0) continue;
    await chmod(path, mode & 0o700);
    found.push(path);
  }
  return found;
}

class KeyDirectory {
  readonly issued: string[] = [];
  readonly #directory: string;
  readonly #now: number;

  constructor({ directory, now }: PkiOptions) {
    this.#directory = directory;
    this.#now = now;
  }

  /** The time to issue at. */
  get #present(): number {
    return Math.max(this.#now, CLOCK_MIN_MS);
  }

  files(name: string): KeyPairFiles {
    return { certFile: join(this.#directory, `${name}.crt`), keyFile: join(this.#directory, `${name}.key`) };
  }

  /** Renews a CA with the same key, so that certificates and clients stay valid. */
  async authority(name: string, commonName: string): Promise<KeyPair> {
    const kept = await readKeyPair(this.files(name));
    if (kept !== undefined && isReusable(kept, kept.cert, [], this.#now, CA_RENEW_DAYS)) return kept;
    const { createAuthority } = await import("../../auth/pki/certificate-authority.ts");
    const request = {
      commonName,
      days: CA_DAYS,
      from: NOT_BEFORE_MS,
      ...(kept === undefined ? {} : { key: kept.key }),
    };
    const made = await createAuthority(request, this.#present);
    await writeKeyPair(this.files(name), made);
    this.issued.push(name);
    return made;
  }

  async leaf(name: string, ca: KeyPair, request: Omit<CertificateOptions, "days">): Promise<KeyPair> {
    const names = request.alternativeNames ?? [];
    const kept = await readKeyPair(this.files(name)).catch(() => undefined);
    if (kept !== undefined && isReusable(kept, ca.cert, names, this.#now, LEAF_RENEW_DAYS) && hasSubject(kept, request))
      return kept;
    const { issueCertificate } = await import("../../auth/pki/certificate-authority.ts");
    const made = await issueCertificate(ca, { ...request, days: LEAF_DAYS, from: NOT_BEFORE_MS }, this.#present);
    await writeKeyPair(this.files(name), made);
    this.issued.push(name);
    return made;
  }
}

function hasSubject({ cert }: KeyPair, { commonName, organizations = [] }: Omit<CertificateOptions, "days">): boolean {
  const subject = new X509Certificate(cert).subject.split("\n").sort();
  return `${subject}` === `${[`CN=${commonName}`, ...organizations.map((name) => `O=${name}`)].sort()}`;
}
