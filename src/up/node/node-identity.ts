/**
 * How the cluster's own node becomes known and trusted: as every other node does. Its agent is told a token of this
 * process and asks for certificates with it; what it has it keeps, and renews in time.
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

/** Who may ask for the first certificate. */
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
  /** PEM: who signs the node's client certificates, and its serving certificates. */
  readonly ca: string;
  readonly agentCa: string;
  /** Of `newNode`. */
  readonly token: string;
  /** The node's connection file, and the one that its agent begins with. */
  readonly svcconfig: string;
  readonly bootstrapSvcconfig: string;
  /** Where the agent keeps its certificates. */
  readonly certDir: string;
  /** Where earlier versions made the node's keys: they are taken over, so that it stays who it is. */
  readonly pkiDirectory: string;
  readonly controllers: readonly string[];
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Resolves with whether the node is known. Rejects when it is not and nobody would make it so. */
export async function prepareNodeIdentity(options: NodeIdentityOptions): Promise<boolean> {
  const { nodeName, server, ca, agentCa, token, svcconfig, bootstrapSvcconfig, pkiDirectory } = options;
  const client = new CertificateFiles(options.certDir, "client");
  const serving = new CertificateFiles(options.certDir, "server");
  await migrate(client, legacyFiles(pkiDirectory, `node-${nodeName}`), options.now);
  await migrate(serving, legacyFiles(pkiDirectory, "agent-server"), options.now);
  const shown = await serving.read();
  if (!isSignedBy(shown, agentCa) || !isValid(shown, options.now)) await rm(serving.current, { force: true });
  const access = { server, ca, cluster: "svc", context: "svc" };
  await writeKubeconfig(bootstrapSvcconfig, { ...access, user: bootstrapUser.name, token });
  const kept = await client.read();
  const isKnown = isSignedBy(kept, ca) && commonName(kept) === `${NODE_USER_PREFIX}${nodeName}`;
  if (isKnown) {
    const files = { certFile: client.current, keyFile: client.current };
    await writeKubeconfig(svcconfig, { ...access, user: `${NODE_USER_PREFIX}${nodeName}`, ...files });
    return true;
  }
  const missing = ["csrapproving", "csrsigning"].filter((name) => !includesController(options.controllers, name));
  if (missing.length > 0) {
    throw new Error(
      `Cannot make node ${nodeName} known to the cluster: ${missing.join(" and ")} would see to that, and ` +
        "--embedded-controllers leaves them out; name them at least this once",
    );
  }
  for (const path of [svcconfig, client.current]) await rm(path, { force: true });
  return false;
}

function legacyFiles(directory: string, name: string): KeyPairFiles {
  return { certFile: join(directory, `${name}.crt`), keyFile: join(directory, `${name}.key`) };
}

/** Copied first, then removed: whenever that is cut off, the next start goes on. */
async function migrate(files: CertificateFiles, from: KeyPairFiles, now: number): Promise<void> {
  const pair = await readKeyPair(from).catch(() => undefined);
  if (pair !== undefined && (await files.read()) === undefined) await files.write(pair, now);
  for (const path of [from.certFile, from.keyFile]) await rm(path, { force: true });
}

function isSignedBy(pair: KeyPair | undefined, authority: string): pair is KeyPair {
  return pair !== undefined && new X509Certificate(pair.cert).verify(new X509Certificate(authority).publicKey);
}

/** A clock that was wrong may have made it for another time. */
function isValid({ cert }: KeyPair, now: number): boolean {
  const { validFromDate, validToDate } = new X509Certificate(cert);
  return validFromDate.getTime() <= now && now < validToDate.getTime();
}

function commonName({ cert }: KeyPair): string | undefined {
  return /^CN=(.*)$/m.exec(new X509Certificate(cert).subject)?.[1];
}
