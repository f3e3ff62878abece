/**
 * The credentials of the cluster's own node, which bootstraps as every other node does: its agent requests certificates
 * with a token of this process, keeps them and renews them.
 */
import { X509Certificate } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { CertificateFiles } from "../../agent/certificates/certificate-files.ts";
import { BOOTSTRAP_GROUP } from "../../apiserver/control-plane/node-bootstrap.ts";
import { type KeyPair, type KeyPairFiles, readKeyPair } from "../../auth/pki/key-pair.ts";
import { NODE_USER_PREFIX, type UserInfo } from "../../auth/user.ts";
import { writeKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import { includesController } from "../../controllers/controller-manager.ts";

/** The user that requests the first certificate. */
export const bootstrapUser: UserInfo = {
  name: "system:bootstrap:svc-up",
  uid: "",
  groups: ["system:bootstrappers", BOOTSTRAP_GROUP],
  extra: {},
};

export interface NodeIdentityOptions {
  readonly nodeName: string;
  /** `https://127.0.0.1:6443` */
  readonly server: string;
  /** PEM of the CAs of the node's client certificates and of its serving certificates. */
  readonly ca: string;
  readonly agentCa: string;
  /** The token of `bootstrapUser`. */
  readonly token: string;
  /** The node's connection file, and the one for bootstrapping. */
  readonly svcconfig: string;
  readonly bootstrapSvcconfig: string;
  /** The agent's certificate directory. */
  readonly certDir: string;
  /** Contains the node's keys of earlier versions, which are migrated. */
  readonly pkiDirectory: string;
  readonly controllers: readonly string[];
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Resolves with whether the node has a certificate. Rejects when it has none and no controller would sign one. */
export async function prepareNodeIdentity(options: NodeIdentityOptions): Promise<boolean> {
  const { nodeName, server, ca, agentCa, token, svcconfig, bootstrapSvcconfig, pkiDirectory } = options;
  const client = new CertificateFiles(options.certDir, "client");
  const serving = new CertificateFiles(options.certDir, "server");
  await migrate(client, legacyFiles(pkiDirectory, `node-${nodeName}`), options.now);
  await migrate(serving, legacyFiles(pkiDirectory, "agent-server"), options.now);
  const current = await serving.read();
  if (!isSignedBy(current, agentCa) || !isValid(current, options.now)) await rm(serving.current, { force: true });
  const access = { server, ca, cluster: "svc", context: "svc" };
  await writeKubeconfig(bootstrapSvcconfig, { ...access, user: bootstrapUser.name, token });
  const kept = await client.read();
  const hasCertificate = isSignedBy(kept, ca) && commonName(kept) === `${NODE_USER_PREFIX}${nodeName}`;
  if (hasCertificate) {
    const files = { certFile: client.current, keyFile: client.current };
    await writeKubeconfig(svcconfig, { ...access, user: `${NODE_USER_PREFIX}${nodeName}`, ...files });
    return true;
  }
  const missing = ["csrapproving", "csrsigning"].filter((name) => !includesController(options.controllers, name));
  if (missing.length > 0) {
    throw new Error(
      `Cannot bootstrap node ${nodeName}: --embedded-controllers disables ${missing.join(" and ")}; ` +
        "enable the controllers that approve and sign its certificate at least once",
    );
  }
  for (const path of [svcconfig, client.current]) await rm(path, { force: true });
  return false;
}

function legacyFiles(directory: string, name: string): KeyPairFiles {
  return { certFile: join(directory, `${name}.crt`), keyFile: join(directory, `${name}.key`) };
}

/** Copies before it removes, so that the next start can continue after an interruption. */
async function migrate(files: CertificateFiles, from: KeyPairFiles, now: number): Promise<void> {
  const pair = await readKeyPair(from).catch(() => undefined);
  if (pair !== undefined && (await files.read()) === undefined) await files.write(pair, now);
  for (const path of [from.certFile, from.keyFile]) await rm(path, { force: true });
}

function isSignedBy(pair: KeyPair | undefined, authority: string): pair is KeyPair {
  return pair !== undefined && new X509Certificate(pair.cert).verify(new X509Certificate(authority).publicKey);
}

/** A certificate that was issued while the clock was wrong may be invalid now. */
function isValid({ cert }: KeyPair, now: number): boolean {
  const { validFromDate, validToDate } = new X509Certificate(cert);
  return validFromDate.getTime() <= now && now < validToDate.getTime();
}

function commonName({ cert }: KeyPair): string | undefined {
  return /^CN=(.*)$/m.exec(new X509Certificate(cert).subject)?.[1];
}
