/** Reads kubeconfig files: finds entries and resolves references between them. */
import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, resolve } from "node:path";
import { parseYaml, type YamlDocument } from "../../schema/yaml/yaml.ts";

export class KubeconfigError extends Error {
  override readonly name = "KubeconfigError";
  readonly path: string;
  /** `users[0].user.client-key`; empty for the whole file. */
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

/** The maximum size of a kubeconfig file. */
const BYTES_MAX = 10 * 1024 * 1024;

/** Throws `KubeconfigError` for an invalid file. */
export async function readKubeconfig(path: string): Promise<KubeconfigReader> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new KubeconfigError(path, "", (cause as Error).message, { cause });
  }
  return new KubeconfigReader(path, parseFile(path, text));
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
  if (more.length > 0) throw new KubeconfigError(path, "", "the file contains more than one YAML document");
  return document;
}

export type Members = Readonly<Record<string, unknown>>;

/** A mapping of the file, and its path: `users[0].user`. */
export interface Entry {
  readonly members: Members;
  readonly at: string;
}

/** Accesses the members of a file. Errors have the line of the member. */
export class KubeconfigReader {
  readonly #path: string;
  readonly #document: YamlDocument;

  constructor(path: string, document: YamlDocument) {
    this.#path = path;
    this.#document = document;
  }

  get root(): Entry {
    return { members: this.members(this.#document.value, ""), at: "" };
  }

  /** PEM from `<name>-data` (base64) or from the file named by `<name>`. */
  async readPem(entry: Entry, name: string): Promise<string | undefined> {
    const data = this.text(entry, `${name}-data`);
    const file = this.text(entry, name);
    const field = `${entry.at}.${data === undefined ? name : `${name}-data`}`;
    let pem: string;
    if (data !== undefined) {
      if (!/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(data)) throw this.error(field, "expected base64");
      pem = Buffer.from(data, "base64").toString("utf8");
    } else if (file !== undefined) pem = await this.readFile(this.resolvePath(file), field);
    else return undefined;
    if (!pem.includes("-----BEGIN ")) throw this.error(field, "expected PEM text, which starts with -----BEGIN");
    return pem;
  }

  async readFile(path: string, field: string): Promise<string> {
    try {
      return await readFile(path, "utf8");
    } catch (cause) {
      throw this.error(field, (cause as Error).message, cause);
    }
  }

  /** Paths are relative to the directory of the file. */
  resolvePath(file: string): string {
    return isAbsolute(file) ? file : resolve(dirname(this.#path), file);
  }

  /** The items of a list; none if it is absent. */
  list({ members, at }: Entry, name: string): readonly unknown[] {
    const value = members[name] ?? [];
    if (!Array.isArray(value)) throw this.error(at === "" ? name : `${at}.${name}`, "expected a list");
    return value;
  }

  /** The entry of a list of `{ name, [member] }`; `from` is the field with the reference. */
  entry(list: string, member: string, name: string, from: string): Entry {
    for (const [index, entry] of this.list(this.root, list).entries()) {
      const members = this.members(entry, `${list}[${index}]`);
      if (members.name !== name) continue;
      const at = `${list}[${index}].${member}`;
      return { members: this.members(members[member] ?? {}, at), at };
    }
    throw this.error(from, `there is no entry named ${JSON.stringify(name)} in ${list}`);
  }

  members(value: unknown, field: string): Members {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Members;
    throw this.error(field, "expected a mapping");
  }

  /** Undefined when absent or empty. */
  text({ members, at }: Entry, name: string): string | undefined {
    const value = members[name];
    if (value === undefined || value === null || value === "") return undefined;
    if (typeof value !== "string") throw this.error(at === "" ? name : `${at}.${name}`, "expected text");
    return value;
  }

  required(entry: Entry, name: string): string {
    const value = this.text(entry, name);
    if (value === undefined) throw this.error(`${entry.at}.${name}`, "it is missing");
    return value;
  }

  refuse({ members, at }: Entry, names: readonly string[]): void {
    const name = names.find((candidate) => Object.hasOwn(members, candidate));
    if (name !== undefined) throw this.error(`${at}.${name}`, "it is not supported");
  }

  error(field: string, message: string, cause?: unknown): KubeconfigError {
    return new KubeconfigError(this.#path, field, message, { cause, line: this.#line(field) });
  }

  /** The line of the field, or of the mapping that lacks it. */
  #line(field: string): number | undefined {
    if (field === "") return undefined;
    return (
      this.#document.line(field) ??
      this.#line(field.slice(0, Math.max(field.lastIndexOf("."), field.lastIndexOf("["), 0)))
    );
  }
}
