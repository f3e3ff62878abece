/** Connection files: Kubernetes' kubeconfig, which `svcconfig` files are. */
import { randomBytes } from "node:crypto";
import { open, readFile, rename, unlink } from "node:fs/promises";
import { dirname, isAbsolute, resolve } from "node:path";
import { encodeYaml, parseYaml, type YamlDocument } from "../schema/yaml.ts";
import { makeDirectory } from "../std/make-directory.ts";

/** What a connection to a cluster needs, files read and references followed. */
export interface ClusterAccess {
  readonly server: string;
  /** PEM; the system's authorities when absent. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly token?: string | undefined;
  /** Where `token` came from: whoever keeps the connection reads it again, since such tokens are rotated. */
  readonly tokenFile?: string | undefined;
  readonly tlsServerName?: string | undefined;
  /** Of the context; empty when it names none. */
  readonly namespace: string;
  readonly context: string;
  readonly user: string;
  readonly cluster: string;
}

export class KubeconfigError extends Error {
  override readonly name = "KubeconfigError";
  readonly path: string;
  /** `users[0].user.client-key`; empty when the whole file is meant. */
  readonly field: string;

  constructor(
    path: string,
    field: string,
    message: string,
    options?: { readonly cause?: unknown; readonly line?: number | undefined },
  ) {
    const where = options?.line === undefined ? path : `${path}:${options.line}`;
    super(`Cannot load ${where}: ${field === "" ? "" : `${field}: `}${message}`, options);
    this.path = path;
    this.field = field;
  }
}

/** A larger file is no connection file. */
const BYTES_MAX = 10 * 1024 * 1024;

/** The current context, or the one named. Throws `KubeconfigError` with file, line and field. */
export async function loadKubeconfig(path: string, context?: string): Promise<ClusterAccess> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new KubeconfigError(path, "", (cause as Error).message, { cause });
  }
  return new Loader(path, parseFile(path, text)).load(context);
}

/** One entry of `users`, files read. */
export interface UserAccess {
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly token?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** All users of a file that has no contexts: they are named by the servers that they are shown to. */
export async function loadUsers(path: string): Promise<ReadonlyMap<string, UserAccess>> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new KubeconfigError(path, "", (cause as Error).message, { cause });
  }
  return await new Loader(path, parseFile(path, text)).loadUsers();
}

function parseFile(path: string, text: string): YamlDocument {
  if (text.length > BYTES_MAX) throw new KubeconfigError(path, "", `the file is larger than ${BYTES_MAX} bytes`);
  let documents: readonly YamlDocument[];
  try {
    documents = parseYaml(text);
  } catch (cause) {
    throw new KubeconfigError(path, "", (cause as Error).message, { cause });
  }
  const [document, ...more] = documents;
  if (document === undefined || document.value === null) throw new KubeconfigError(path, "", "the file is empty");
  if (more.length > 0) throw new KubeconfigError(path, "", "the file holds more than one YAML document");
  return document;
}

type Members = Readonly<Record<string, unknown>>;

/** Ways to prove who one is that are not understood; silence would turn them into no proof at all. */
const USER_UNSUPPORTED = ["exec", "auth-provider", "as", "as-groups", "as-uid", "as-user-extra"];
const BASIC = ["username", "password"];
const CLUSTER_UNSUPPORTED = ["proxy-url"];

class Loader {
  readonly #path: string;
  readonly #document: YamlDocument;

  constructor(path: string, document: YamlDocument) {
    this.#path = path;
    this.#document = document;
  }

  async load(wanted: string | undefined): Promise<ClusterAccess> {
    const root = this.#members(this.#document.value, "");
    const kind = root.kind;
    if (kind !== undefined && kind !== "Config")
      throw this.#error("kind", `expected Config, found ${JSON.stringify(kind)}`);
    const context = wanted ?? this.#text(root, "current-context", "");
    if (context === undefined) throw this.#error("current-context", "it is empty: no context was chosen");
    const found = this.#named(
      root,
      "contexts",
      "context",
      context,
      wanted === undefined ? "current-context" : "contexts",
    );
    const clusterName = this.#needed(found.members, "cluster", found.at);
    const userName = this.#text(found.members, "user", found.at) ?? "";
    const cluster = this.#named(root, "clusters", "cluster", clusterName, `${found.at}.cluster`);
    const user = userName === "" ? undefined : this.#named(root, "users", "user", userName, `${found.at}.user`);
    if (user !== undefined) this.#refuse(user.members, user.at, BASIC);
    return {
      ...(await this.#clusterAccess(cluster.members, cluster.at)),
      ...(user === undefined ? {} : await this.#userAccess(user.members, user.at)),
      namespace: this.#text(found.members, "namespace", found.at) ?? "",
      context,
      user: userName,
      cluster: clusterName,
    };
  }

  async loadUsers(): Promise<ReadonlyMap<string, UserAccess>> {
    const root = this.#members(this.#document.value, "");
    const entries = root.users ?? [];
    if (!Array.isArray(entries)) throw this.#error("users", "expected a list");
    const users = new Map<string, UserAccess>();
    for (const [index, entry] of entries.entries()) {
      const name = this.#needed(this.#members(entry, `users[${index}]`), "name", `users[${index}]`);
      const { members, at } = this.#named(root, "users", "user", name, `users[${index}].name`);
      const username = this.#text(members, "username", at);
      const password = this.#text(members, "password", at);
      users.set(name, { ...(await this.#userAccess(members, at)), username, password });
    }
    return users;
  }

  async #clusterAccess(members: Members, at: string) {
    this.#refuse(members, at, CLUSTER_UNSUPPORTED);
    if (members["insecure-skip-tls-verify"] === true) {
      throw this.#error(
        `${at}.insecure-skip-tls-verify`,
        "servers are always verified; give certificate-authority-data, and tls-server-name if the name differs",
      );
    }
    const server = this.#needed(members, "server", at);
    const url = URL.parse(server);
    if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) {
      throw this.#error(`${at}.server`, `expected https://host:port, found ${JSON.stringify(server)}`);
    }
    const tlsServerName = this.#text(members, "tls-server-name", at);
    const ca = await this.#pem(members, "certificate-authority", at);
    return { server, ...(ca === undefined ? {} : { ca }), ...(tlsServerName === undefined ? {} : { tlsServerName }) };
  }

  async #userAccess(members: Members, at: string) {
    this.#refuse(members, at, USER_UNSUPPORTED);
    const cert = await this.#pem(members, "client-certificate", at);
    const key = await this.#pem(members, "client-key", at);
    if (cert !== undefined && key === undefined) throw this.#error(`${at}.client-key`, "the certificate has no key");
    if (cert === undefined && key !== undefined)
      throw this.#error(`${at}.client-certificate`, "the key has no certificate");
    const file = this.#text(members, "tokenFile", at);
    const tokenFile = file === undefined ? undefined : this.#resolved(file);
    // As in Kubernetes, the file wins: it is the one that is kept fresh.
    const token =
      tokenFile === undefined
        ? this.#text(members, "token", at)
        : (await this.#file(tokenFile, `${at}.tokenFile`)).trim();
    if (tokenFile !== undefined && token === "") throw this.#error(`${at}.tokenFile`, `${tokenFile} is empty`);
    return {
      ...(cert === undefined ? {} : { cert, key }),
      ...(token === undefined ? {} : { token }),
      ...(tokenFile === undefined ? {} : { tokenFile }),
    };
  }

  /** PEM from `<name>-data` (base64) or from the file named by `<name>`. */
  async #pem(members: Members, name: string, at: string): Promise<string | undefined> {
    const data = this.#text(members, `${name}-data`, at);
    const file = this.#text(members, name, at);
    const field = `${at}.${data === undefined ? name : `${name}-data`}`;
    let pem: string;
    if (data !== undefined) {
      if (!/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(data)) throw this.#error(field, "expected base64");
      pem = Buffer.from(data, "base64").toString("utf8");
    } else if (file !== undefined) pem = await this.#file(this.#resolved(file), field);
    else return undefined;
    if (!pem.includes("-----BEGIN ")) throw this.#error(field, "expected PEM text, which starts with -----BEGIN");
    return pem;
  }

  async #file(path: string, field: string): Promise<string> {
    try {
      return await readFile(path, "utf8");
    } catch (cause) {
      throw this.#error(field, (cause as Error).message, cause);
    }
  }

  #resolved(file: string): string {
    return isAbsolute(file) ? file : resolve(dirname(this.#path), file);
  }

  /** The entry of a list of `{ name, [member] }`. */
  #named(root: Members, list: string, member: string, name: string, from: string): { members: Members; at: string } {
    const entries = root[list] ?? [];
    if (!Array.isArray(entries)) throw this.#error(list, "expected a list");
    for (const [index, entry] of entries.entries()) {
      const members = this.#members(entry, `${list}[${index}]`);
      if (members.name !== name) continue;
      const at = `${list}[${index}].${member}`;
      return { members: this.#members(members[member] ?? {}, at), at };
    }
    throw this.#error(from, `there is no entry named ${JSON.stringify(name)} in ${list}`);
  }

  #members(value: unknown, field: string): Members {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Members;
    throw this.#error(field, "expected a mapping");
  }

  /** Undefined when absent or empty. */
  #text(members: Members, name: string, at: string): string | undefined {
    const value = members[name];
    if (value === undefined || value === null || value === "") return undefined;
    if (typeof value !== "string") throw this.#error(at === "" ? name : `${at}.${name}`, "expected text");
    return value;
  }

  #needed(members: Members, name: string, at: string): string {
    const value = this.#text(members, name, at);
    if (value === undefined) throw this.#error(`${at}.${name}`, "it is missing");
    return value;
  }

  #refuse(members: Members, at: string, names: readonly string[]): void {
    const name = names.find((candidate) => Object.hasOwn(members, candidate));
    if (name !== undefined) throw this.#error(`${at}.${name}`, "it is not supported");
  }

  #error(field: string, message: string, cause?: unknown): KubeconfigError {
    return new KubeconfigError(this.#path, field, message, { cause, line: this.#line(field) });
  }

  /** Of the field, or of what it is missing from. */
  #line(field: string): number | undefined {
    if (field === "") return undefined;
    return (
      this.#document.line(field) ??
      this.#line(field.slice(0, Math.max(field.lastIndexOf("."), field.lastIndexOf("["), 0)))
    );
  }
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
}

/** Replaces the file in one step, mode 0600; makes its directory when there is none. */
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
  const { server, cluster, user, namespace, ca, cert, key, certFile, keyFile, token, tlsServerName } = content;
  const context = content.context ?? `${user}@${cluster}`;
  return encodeYaml({
    apiVersion: "v1",
    kind: "Config",
    "current-context": context,
    preferences: {},
    clusters: [
      {
        name: cluster,
        cluster: { server, ...data("certificate-authority", ca), ...plain("tls-server-name", tlsServerName) },
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
