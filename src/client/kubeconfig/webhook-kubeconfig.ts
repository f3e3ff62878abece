/**
 * Kubeconfig files of webhooks, which may use everything that Kubernetes supports: proxies, basic authentication and
 * credential plugins among it.
 */
import {
  type ClusterAccess,
  readClusterAccess,
  readUserAccess,
  resolveContext,
  USER_UNSUPPORTED,
} from "./kubeconfig.ts";
import { type Entry, type KubeconfigReader, readKubeconfig } from "./reader.ts";

export interface WebhookKubeconfig extends KubeconfigUser, Pick<ClusterAccess, "server" | "ca" | "tlsServerName"> {
  /** Disables the verification of the server's certificate. */
  readonly insecure: boolean;
  /** `http://user:password@host:port` or `https://…` */
  readonly proxy?: URL | undefined;
}

/** The credentials of a user. */
export interface KubeconfigUser extends Pick<ClusterAccess, "cert" | "key" | "token" | "tokenFile"> {
  /** The files of `cert` and `key`, if they are files, which may be renewed. */
  readonly pairFiles?: { readonly cert: string; readonly key: string } | undefined;
  readonly basic?: { readonly username: string; readonly password: string } | undefined;
  readonly exec?: ExecConfig | undefined;
}

/** A credential plugin. */
export interface ExecConfig {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** `client.authentication.k8s.io/v1` or `…/v1beta1`. */
  readonly apiVersion: string;
  /** The end of the error message when the program is missing. */
  readonly installHint: string;
  /** Information about the cluster for the program. */
  readonly cluster?: Readonly<Record<string, unknown>> | undefined;
}

const EXEC_VERSIONS = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
const INTERACTIVE_MODES = ["Never", "IfAvailable", "Always"];
const PROXIES = ["http:", "https:"];

/** Throws `KubeconfigError` with file, line and field. */
export async function loadWebhookKubeconfig(path: string): Promise<WebhookKubeconfig> {
  const reader = await readKubeconfig(path);
  const { cluster, user } = resolveContext(reader);
  const access = await readClusterAccess(reader, cluster);
  const insecure = cluster.members["insecure-skip-tls-verify"] === true;
  if (insecure && access.ca !== undefined) {
    const why = "specifying a root certificates file with the insecure flag is not allowed";
    throw reader.error(`${cluster.at}.insecure-skip-tls-verify`, why);
  }
  const proxy = readProxy(reader, cluster);
  return { ...access, insecure, proxy, ...(user === undefined ? {} : await readUser(reader, user, cluster)) };
}

/** All users of a file without contexts, whose names are those of servers. */
export async function loadKubeconfigUsers(path: string): Promise<ReadonlyMap<string, KubeconfigUser>> {
  const reader = await readKubeconfig(path);
  const users = new Map<string, KubeconfigUser>();
  for (const [index, item] of reader.list(reader.root, "users").entries()) {
    const at = `users[${index}]`;
    const name = reader.required({ members: reader.members(item, at), at }, "name");
    users.set(name, await readUser(reader, reader.entry("users", "user", name, `${at}.name`)));
  }
  return users;
}

async function readUser(reader: KubeconfigReader, user: Entry, cluster?: Entry): Promise<KubeconfigUser> {
  reader.refuse(user, USER_UNSUPPORTED);
  const access = await readUserAccess(reader, user);
  const basic = readBasicAuth(reader, user);
  if (basic !== undefined && access.token !== undefined) {
    throw reader.error(user.at, "more than one authentication method found: only one of token and username is allowed");
  }
  return { ...access, basic, exec: readExec(reader, user, cluster), pairFiles: readKeyPairFiles(reader, user) };
}

function readProxy(reader: KubeconfigReader, cluster: Entry): URL | undefined {
  const text = reader.text(cluster, "proxy-url");
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url !== null && PROXIES.includes(url.protocol)) return url;
  throw reader.error(`${cluster.at}.proxy-url`, "expected http://host:port or https://host:port");
}

function readBasicAuth(reader: KubeconfigReader, user: Entry): WebhookKubeconfig["basic"] {
  const username = reader.text(user, "username");
  return username === undefined ? undefined : { username, password: reader.text(user, "password") ?? "" };
}

function readKeyPairFiles(reader: KubeconfigReader, user: Entry): WebhookKubeconfig["pairFiles"] {
  const [cert, key] = ["client-certificate", "client-key"].map((name) =>
    reader.text(user, `${name}-data`) === undefined ? reader.text(user, name) : undefined,
  );
  return cert === undefined || key === undefined
    ? undefined
    : { cert: reader.resolvePath(cert), key: reader.resolvePath(key) };
}

function readExec(reader: KubeconfigReader, { members, at }: Entry, cluster?: Entry): ExecConfig | undefined {
  if (members.exec === undefined || members.exec === null) return undefined;
  const exec = { members: reader.members(members.exec, `${at}.exec`), at: `${at}.exec` };
  const command = reader.required(exec, "command");
  const apiVersion = reader.required(exec, "apiVersion");
  if (!EXEC_VERSIONS.includes(apiVersion)) {
    throw reader.error(`${exec.at}.apiVersion`, `expected ${EXEC_VERSIONS.join(" or ")}`);
  }
  const mode = reader.text(exec, "interactiveMode") ?? (apiVersion === EXEC_VERSIONS[0] ? "" : "IfAvailable");
  if (!INTERACTIVE_MODES.includes(mode)) {
    throw reader.error(`${exec.at}.interactiveMode`, `expected one of ${INTERACTIVE_MODES.join(", ")}`);
  }
  if (mode === "Always") throw reader.error(`${exec.at}.interactiveMode`, "the server has no terminal");
  const args = reader.list(exec, "args").map((arg, i) => {
    if (typeof arg !== "string") throw reader.error(`${exec.at}.args[${i}]`, "expected text");
    return arg;
  });
  const env = reader.list(exec, "env").map((item, i) => {
    const variable = { members: reader.members(item, `${exec.at}.env[${i}]`), at: `${exec.at}.env[${i}]` };
    return [reader.required(variable, "name"), reader.text(variable, "value") ?? ""] as const;
  });
  const isTold = exec.members.provideClusterInfo === true;
  return {
    // A name without a slash is searched in PATH.
    command: command.includes("/") ? reader.resolvePath(command) : command,
    args,
    env: Object.fromEntries(env),
    apiVersion,
    installHint: reader.text(exec, "installHint") ?? "",
    ...(isTold && cluster !== undefined ? { cluster: clusterInfo(cluster) } : {}),
  };
}

const CLUSTER_INFO_FIELDS = [
  "server",
  "tls-server-name",
  "insecure-skip-tls-verify",
  "certificate-authority-data",
  "proxy-url",
];
/** The extension of a cluster for its credential plugin. */
const EXEC_EXTENSION = "client.authentication.k8s.io/exec";

function clusterInfo({ members }: Entry): Readonly<Record<string, unknown>> {
  const fields = CLUSTER_INFO_FIELDS.filter((name) => members[name] !== undefined).map(
    (name) => [name, members[name]] as const,
  );
  const extensions: readonly unknown[] = Array.isArray(members.extensions) ? members.extensions : [];
  const own = extensions.find((each) => (each as { readonly name?: unknown } | null)?.name === EXEC_EXTENSION);
  const config = (own as { readonly extension?: unknown } | undefined)?.extension;
  return { ...Object.fromEntries(fields), ...(config === undefined ? {} : { config }) };
}
