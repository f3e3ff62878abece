/**
 * Connection files to servers that others run, as webhooks' are: they may say all that Kubernetes has them say, how to
 * get past a proxy and to whom credentials are made by a program among it.
 */
import { type ClusterAccess, chosen, clusterAccess, USER_UNSUPPORTED, userAccess } from "./kubeconfig.ts";
import { type Entry, type KubeconfigReader, readKubeconfig } from "./reader.ts";

export interface ConnectionFile extends UserFile, Pick<ClusterAccess, "server" | "ca" | "tlsServerName"> {
  /** Whoever answers is believed to be the server. */
  readonly insecure: boolean;
  /** `http://user:password@host:port` or `https://…` */
  readonly proxy?: URL | undefined;
}

/** Who somebody is, and how that is proved. */
export interface UserFile extends Pick<ClusterAccess, "cert" | "key" | "token" | "tokenFile"> {
  /** Where `cert` and `key` came from, where it was files: they may be renewed. */
  readonly pairFiles?: { readonly cert: string; readonly key: string } | undefined;
  readonly basic?: { readonly username: string; readonly password: string } | undefined;
  readonly exec?: ExecUser | undefined;
}

/** A user whose credentials a program tells. */
export interface ExecUser {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** `client.authentication.k8s.io/v1` or `…/v1beta1`. */
  readonly apiVersion: string;
  /** What an operator is told who has no such program. */
  readonly installHint: string;
  /** The program is told of the server. */
  readonly cluster?: Readonly<Record<string, unknown>> | undefined;
}

const EXEC_VERSIONS = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
const INTERACTIVE_MODES = ["Never", "IfAvailable", "Always"];
const PROXIES = ["http:", "https:"];

/** Throws `KubeconfigError` with file, line and field. */
export async function loadConnection(path: string): Promise<ConnectionFile> {
  const reader = await readKubeconfig(path);
  const { cluster, user } = chosen(reader);
  const access = await clusterAccess(reader, cluster);
  const insecure = cluster.members["insecure-skip-tls-verify"] === true;
  if (insecure && access.ca !== undefined) {
    const why = "specifying a root certificates file with the insecure flag is not allowed";
    throw reader.error(`${cluster.at}.insecure-skip-tls-verify`, why);
  }
  const proxy = proxyOf(reader, cluster);
  return { ...access, insecure, proxy, ...(user === undefined ? {} : await userFileOf(reader, user, cluster)) };
}

/** All users of a file that has no contexts: they are named by the servers that they are shown to. */
export async function loadUsers(path: string): Promise<ReadonlyMap<string, UserFile>> {
  const reader = await readKubeconfig(path);
  const users = new Map<string, UserFile>();
  for (const [index, item] of reader.list(reader.root, "users").entries()) {
    const at = `users[${index}]`;
    const name = reader.needed({ members: reader.members(item, at), at }, "name");
    users.set(name, await userFileOf(reader, reader.named("users", "user", name, `${at}.name`)));
  }
  return users;
}

async function userFileOf(reader: KubeconfigReader, user: Entry, cluster?: Entry): Promise<UserFile> {
  reader.refuse(user, USER_UNSUPPORTED);
  const known = await userAccess(reader, user);
  const basic = basicOf(reader, user);
  if (basic !== undefined && known.token !== undefined) {
    throw reader.error(user.at, "more than one authentication method found: only one of token and username is allowed");
  }
  return { ...known, basic, exec: execOf(reader, user, cluster), pairFiles: pairFilesOf(reader, user) };
}

function proxyOf(reader: KubeconfigReader, cluster: Entry): URL | undefined {
  const text = reader.text(cluster, "proxy-url");
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url !== null && PROXIES.includes(url.protocol)) return url;
  throw reader.error(`${cluster.at}.proxy-url`, "expected http://host:port or https://host:port");
}

function basicOf(reader: KubeconfigReader, user: Entry): ConnectionFile["basic"] {
  const username = reader.text(user, "username");
  return username === undefined ? undefined : { username, password: reader.text(user, "password") ?? "" };
}

function pairFilesOf(reader: KubeconfigReader, user: Entry): ConnectionFile["pairFiles"] {
  const [cert, key] = ["client-certificate", "client-key"].map((name) =>
    reader.text(user, `${name}-data`) === undefined ? reader.text(user, name) : undefined,
  );
  return cert === undefined || key === undefined
    ? undefined
    : { cert: reader.resolved(cert), key: reader.resolved(key) };
}

function execOf(reader: KubeconfigReader, { members, at }: Entry, cluster?: Entry): ExecUser | undefined {
  if (members.exec === undefined || members.exec === null) return undefined;
  const exec = { members: reader.members(members.exec, `${at}.exec`), at: `${at}.exec` };
  const command = reader.needed(exec, "command");
  const apiVersion = reader.needed(exec, "apiVersion");
  if (!EXEC_VERSIONS.includes(apiVersion)) {
    throw reader.error(`${exec.at}.apiVersion`, `expected ${EXEC_VERSIONS.join(" or ")}`);
  }
  const mode = reader.text(exec, "interactiveMode") ?? (apiVersion === EXEC_VERSIONS[0] ? "" : "IfAvailable");
  if (!INTERACTIVE_MODES.includes(mode)) {
    throw reader.error(`${exec.at}.interactiveMode`, `expected one of ${INTERACTIVE_MODES.join(", ")}`);
  }
  if (mode === "Always") throw reader.error(`${exec.at}.interactiveMode`, "nobody sits at a terminal of the server");
  const args = reader.list(exec, "args").map((arg, i) => {
    if (typeof arg !== "string") throw reader.error(`${exec.at}.args[${i}]`, "expected text");
    return arg;
  });
  const env = reader.list(exec, "env").map((item, i) => {
    const variable = { members: reader.members(item, `${exec.at}.env[${i}]`), at: `${exec.at}.env[${i}]` };
    return [reader.needed(variable, "name"), reader.text(variable, "value") ?? ""] as const;
  });
  const isTold = exec.members.provideClusterInfo === true;
  return {
    // A name without a slash is looked for where programs are.
    command: command.includes("/") ? reader.resolved(command) : command,
    args,
    env: Object.fromEntries(env),
    apiVersion,
    installHint: reader.text(exec, "installHint") ?? "",
    ...(isTold && cluster !== undefined ? { cluster: toldOf(cluster) } : {}),
  };
}

const TOLD = ["server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url"];
/** The extension of a cluster that is for its program. */
const EXEC_EXTENSION = "client.authentication.k8s.io/exec";

function toldOf({ members }: Entry): Readonly<Record<string, unknown>> {
  const known = TOLD.filter((name) => members[name] !== undefined).map((name) => [name, members[name]] as const);
  const extensions: readonly unknown[] = Array.isArray(members.extensions) ? members.extensions : [];
  const own = extensions.find((each) => (each as { readonly name?: unknown } | null)?.name === EXEC_EXTENSION);
  const config = (own as { readonly extension?: unknown } | undefined)?.extension;
  return { ...Object.fromEntries(known), ...(config === undefined ? {} : { config }) };
}
