/** The transformers of `--encryption-provider-config`, which may be reloaded while the server runs. */
import { readFileSync } from "node:fs";
import type { Kind } from "../../api/kind.ts";
import { watchFiles } from "../../std/fs/watch-files.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { normalizePrefix } from "../keys.ts";
import { parseEncryptionConfiguration } from "./configuration.ts";
import { createTransformers, type FindTransformer, type GroupResource } from "./encrypted-resources.ts";
import type { Transformer } from "./transformer.ts";

export interface EncryptionOptions {
  /** `--encryption-provider-config` */
  readonly file: string;
  /** `--encryption-provider-config-automatic-reload` */
  readonly reload: boolean;
}

type StoredKind = Pick<Kind, "group" | "plural" | "storageName">;

export interface EncryptionDeps {
  /** `--kvstore-prefix` */
  readonly prefix: string;
  readonly kinds: readonly StoredKind[];
  readonly clock: Clock;
  readonly log: Logger;
}

export class StorageEncryption implements Disposable {
  readonly #file: string;
  readonly #log: Logger;
  readonly #resourceOf: (key: string) => GroupResource | undefined;
  #text: string;
  #find: FindTransformer;
  #watch: Disposable | undefined;
  /** By resource: a key is looked up for each value that is read. */
  #transformers = new Map<GroupResource, Transformer | undefined>();

  /** Throws one sentence for a file that is no valid configuration. */
  constructor({ file, reload }: EncryptionOptions, { prefix, kinds, clock, log }: EncryptionDeps) {
    this.#file = file;
    this.#log = log;
    this.#resourceOf = createResourceFinder(prefix, kinds);
    this.#text = readConfiguration(file);
    this.#find = createTransformers(parseEncryptionConfiguration(file, this.#text));
    if (reload) this.#watch = watchFiles([file], clock, () => this.#reload());
  }

  [Symbol.dispose](): void {
    this.#watch?.[Symbol.dispose]();
  }

  /** Undefined: the value at the key is plain text. */
  transformerOf(key: string): Transformer | undefined {
    const resource = this.#resourceOf(key);
    if (resource === undefined) return undefined;
    if (!this.#transformers.has(resource)) this.#transformers.set(resource, this.#find(resource));
    return this.#transformers.get(resource);
  }

  /** An invalid file is reported, and the configuration before it stays. */
  #reload(): void {
    try {
      const text = readConfiguration(this.#file);
      if (text === this.#text) return;
      this.#find = createTransformers(parseEncryptionConfiguration(this.#file, text));
      this.#transformers = new Map();
      this.#text = text;
      this.#log.info("Reloaded the encryption configuration", { file: this.#file });
    } catch (error) {
      this.#log.error("Failed to reload the encryption configuration; the one before stays in use", error);
    }
  }
}

function readConfiguration(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? `open ${file}: no such file or directory` : message;
    const what = `error reading encryption provider configuration file ${JSON.stringify(file)}: ${why}`;
    throw new Error(`error while parsing file: error while loading file: ${what}`, { cause });
  }
}

/** Custom resources, whose kinds come and go, are stored under group and plural name: the most that are remembered. */
const CUSTOM_RESOURCES_MAX = 4096;

function createResourceFinder(
  prefix: string,
  kinds: readonly StoredKind[],
): (key: string) => GroupResource | undefined {
  const root = normalizePrefix(prefix);
  const resources = new Map<string, GroupResource>();
  // Events of both groups are stored as those of the core group.
  for (const { group, plural, storageName } of kinds) {
    if (!resources.has(storageName) || group === "") resources.set(storageName, { group, resource: plural });
  }
  const customResources = new Map<string, GroupResource>();
  return (key) => {
    if (!key.startsWith(root)) return undefined;
    const [first = "", second = ""] = key.slice(root.length).split("/", 2);
    const builtIn = resources.get(first) ?? resources.get(`${first}/${second}`);
    if (builtIn !== undefined || !first.includes(".")) return builtIn;
    const name = `${first}/${second}`;
    let custom = customResources.get(name);
    if (custom === undefined) {
      if (customResources.size >= CUSTOM_RESOURCES_MAX) customResources.clear();
      custom = { group: first, resource: second };
      customResources.set(name, custom);
    }
    return custom;
  };
}
