/** Loads and writes kubeconfig files, which the `svcconfig` files are. */
import { randomBytes } from "node:crypto";
import { open, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { encodeYaml } from "../../schema/yaml/write-yaml.ts";
import { makeDirectory } from "../../std/fs/make-directory.ts";
import { type Entry, type KubeconfigReader, type Members, readKubeconfig } from "./reader.ts";

/** The settings of a connection to a cluster: files are read and references resolved. */
export interface ClusterAccess {
  readonly server: string;
  /** PEM; the system's authorities when absent. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly token?: string | undefined;
  /** The file of `token`, which long-lived connections read again, since such tokens are rotated. */
  readonly tokenFile?: string | undefined;
  readonly tlsServerName?: string | undefined;
  /** The server's certificate is not verified. */
  readonly insecure?: boolean | undefined;
  /** The namespace of the context; empty if it has none. */
  readonly namespace: string;
  readonly context: string;
  readonly user: string;
  readonly cluster: string;
}

/** Loads the current context, or the named one. Throws `KubeconfigError` with file, line and field. */
export async function loadKubeconfig(path: string, context?: string): Promise<ClusterAccess> {
  const reader = await readKubeconfig(path);
  const { cluster, user, names } = resolveContext(reader, context);
  reader.refuse(cluster, CLUSTER_UNSUPPORTED);
  const insecure = cluster.members["insecure-skip-tls-verify"] === true;
  if (user !== undefined) reader.refuse(user, [...USER_UNSUPPORTED, "exec", ...BASIC]);
  const access = await readClusterAccess(reader, cluster);
  if (insecure && access.ca !== undefined) {
    const why = "specifying a root certificates file with the insecure flag is not allowed";
    throw reader.error(`${cluster.at}.insecure-skip-tls-verify`, why);
  }
  return {
    ...access,
    ...(insecure ? { insecure } : {}),
    ...(user === undefined ? {} : await readUserAccess(reader, user)),
    ...names,
  };
}

/** Unsupported authentication methods: ignoring them would make requests anonymous. */
export const USER_UNSUPPORTED = ["auth-provider", "as", "as-groups", "as-uid", "as-user-extra"];
const BASIC = ["username", "password"];
const CLUSTER_UNSUPPORTED = ["proxy-url"];

/** A context with its cluster and its user. */
export interface ResolvedContext {
  readonly cluster: Entry;
  readonly user: Entry | undefined;
  readonly names: Pick<ClusterAccess, "namespace" | "context" | "user" | "cluster">;
}

export function resolveContext(reader: KubeconfigReader, requested?: string): ResolvedContext {
  const { root } = reader;
  const { kind } = root.members;
  if (kind !== undefined && kind !== "Config")
    throw reader.error("kind", `expected Config, found ${JSON.stringify(kind)}`);
  const name = requested ?? reader.text(root, "current-context");
  if (name === undefined) throw reader.error("current-context", "it is empty: there is no current context");
  const context = reader.entry("contexts", "context", name, requested === undefined ? "current-context" : "contexts");
  const clusterName = reader.required(context, "cluster");
  const userName = reader.text(context, "user") ?? "";
  const namespace = reader.text(context, "namespace") ?? "";
  return {
    cluster: reader.entry("clusters", "cluster", clusterName, `${context.at}.cluster`),
    user: userName === "" ? undefined : reader.entry("users", "user", userName, `${context.at}.user`),
    names: { namespace, context: name, user: userName, cluster: clusterName },
  };
}

export async function readClusterAccess(
  reader: KubeconfigReader,
  cluster: Entry,
): Promise<Pick<ClusterAccess, "server" | "ca" | "tlsServerName">> {
  const server = reader.required(cluster, "server");
  const url = URL.parse(server);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw reader.error(`${cluster.at}.server`, `expected https://host:port, found ${JSON.stringify(server)}`);
  }
  const tlsServerName = reader.text(cluster, "tls-server-name");
  const ca = await reader.readPem(cluster, "certificate-authority");
  return { server, ...(ca === undefined ? {} : { ca }), ...(tlsServerName === undefined ? {} : { tlsServerName }) };
}

export async function readUserAccess(
  reader: KubeconfigReader,
  user: Entry,
): Promise<Pick<ClusterAccess, "cert" | "key" | "token" | "tokenFile">> {
  const cert = await reader.readPem(user, "client-certificate");
  const key = await reader.readPem(user, "client-key");
  if (cert !== undefined && key === undefined)
    throw reader.error(`${user.at}.client-key`, "the certificate has no key");
  if (cert === undefined && key !== undefined)
    throw reader.error(`${user.at}.client-certificate`, "the key has no certificate");
  const file = reader.text(user, "tokenFile");
  const tokenFile = file === undefined ? undefined : reader.resolvePath(file);
  // As in Kubernetes, the file has precedence, because it is updated.
  const token =
    tokenFile === undefined
      ? reader.text(user, "token")
      : (await reader.readFile(tokenFile, `${user.at}.tokenFile`)).trim();
  if (tokenFile !== undefined && token === "") throw reader.error(`${user.at}.tokenFile`, `${tokenFile} is empty`);
  return {
    ...(cert === undefined ? {} : { cert, key }),
    ...(token === undefined ? {} : { token }),
    ...(tokenFile === undefined ? {} : { tokenFile }),
  };
}

export interface KubeconfigContent {
  readonly server: string;
  readonly cluster: string;
  readonly user: string;
  /** `<user>@<cluster>` when absent. */
  readonly context?: string | undefined;
  readonly namespace?: string | undefined;
  /** PEM, embedded as data. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** Paths, in place of PEM. */
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly token?: string | undefined;
  readonly tlsServerName?: string | undefined;
  /** Clients do not verify the server's certificate. */
  readonly insecure?: boolean | undefined;
}

/** Replaces the file atomically, with mode 0600; creates its directory. */
export async function writeKubeconfig(path: string, content: KubeconfigContent): Promise<void> {
  const directory = dirname(path);
  await makeDirectory(directory, 0o700);
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.writeFile(renderKubeconfig(content));
    await file.sync();
    await file.close();
    await rename(temporary, path);
  } catch (error) {
    await file.close().catch(() => {});
    await unlink(temporary).catch(() => {});
    throw error;
  }
}

export function renderKubeconfig(content: KubeconfigContent): string {
  const { server, cluster, user, namespace, ca, cert, key, certFile, keyFile, token, tlsServerName, insecure } =
    content;
  const context = content.context ?? `${user}@${cluster}`;
  return encodeYaml({
    apiVersion: "v1",
    kind: "Config",
    "current-context": context,
    preferences: {},
    clusters: [
      {
        name: cluster,
        cluster: {
          server,
          ...(insecure === true ? { "insecure-skip-tls-verify": true } : {}),
          ...data("certificate-authority", ca),
          ...plain("tls-server-name", tlsServerName),
        },
      },
    ],
    users: [
      {
        name: user,
        user: {
          ...data("client-certificate", cert),
          ...data("client-key", key),
          ...plain("client-certificate", certFile),
          ...plain("client-key", keyFile),
          ...plain("token", token),
        },
      },
    ],
    contexts: [{ name: context, context: { cluster, user, ...plain("namespace", namespace) } }],
  });
}

function data(name: string, pem: string | undefined): Members {
  return pem === undefined ? {} : { [`${name}-data`]: Buffer.from(pem).toString("base64") };
}

function plain(name: string, value: string | undefined): Members {
  return value === undefined ? {} : { [name]: value };
}
