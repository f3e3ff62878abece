/** The transformers of `--encryption-provider-config`, which may be reloaded while the server runs. */
import { readFileSync } from "node:fs";
import type { HealthCheck } from "../../http/health.ts";
import { watchFiles } from "../../std/fs/watch-files.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { parseEncryptionConfiguration } from "./configuration.ts";
import { createTransformers, type GroupResource, type ResourceTransformers } from "./encrypted-resources.ts";
import type { EncryptionMetrics } from "./encryption-metrics.ts";
import { createResourceFinder, resourceText, type StoredKind } from "./resource-of-key.ts";
import { aggregateErrors, identity, type Transformer } from "./transformer.ts";

export interface EncryptionOptions {
  /** `--encryption-provider-config` */
  readonly file: string;
  /** `--encryption-provider-config-automatic-reload` */
  readonly reload: boolean;
  /** The gate `KMSv1`. */
  readonly kmsV1?: boolean | undefined;
}

export interface EncryptionDeps {
  /** `--kvstore-prefix` */
  readonly prefix: string;
  readonly kinds: readonly StoredKind[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: EncryptionMetrics | undefined;
}

/** The check of the plugins of a changed file takes at least this long before the file is refused. */
const NEW_PLUGINS_MS_MIN = 10_000;
const NEW_PLUGINS_POLL_MS = 100;

export class StorageEncryption implements Disposable {
  readonly #options: EncryptionOptions;
  readonly #deps: EncryptionDeps;
  readonly #resourceOf: (key: string) => GroupResource | undefined;
  #text: string;
  #rules: ResourceTransformers;
  #watch: Disposable | undefined;
  readonly #closing = new AbortController();
  /** The transformers of former configurations, until calls in progress have ended. */
  readonly #retired = new Map<ResourceTransformers, Timer>();
  #reloading = false;
  /** By resource: a key is looked up for each value that is read. */
  #transformers = new Map<GroupResource, Transformer>();

  /** Rejects with one sentence for a file that is no valid configuration. */
  static async open(options: EncryptionOptions, deps: EncryptionDeps): Promise<StorageEncryption> {
    const text = readConfiguration(options.file);
    return new StorageEncryption(options, deps, text, await loadRules(options, deps, text));
  }

  private constructor(options: EncryptionOptions, deps: EncryptionDeps, text: string, rules: ResourceTransformers) {
    this.#options = options;
    this.#deps = deps;
    this.#resourceOf = createResourceFinder(deps.prefix, deps.kinds);
    this.#text = text;
    this.#rules = rules;
    if (options.reload) this.#watch = watchFiles([options.file], deps.clock, () => void this.#reload());
  }

  [Symbol.dispose](): void {
    this.#closing.abort(new Error("the server stops"));
    this.#watch?.[Symbol.dispose]();
    this.#rules[Symbol.dispose]();
    for (const [rules, timer] of this.#retired) {
      timer.cancel();
      rules[Symbol.dispose]();
    }
  }

  /** Undefined: the value at the key is of no resource. */
  transformerOf(key: string): Transformer | undefined {
    const resource = this.#resourceOf(key);
    if (resource === undefined) return undefined;
    let transformer = this.#transformers.get(resource);
    if (transformer === undefined) {
      const observe = this.#deps.metrics?.observeResource(resourceText(resource));
      transformer = this.#rules.find(resource, observe) ?? identity.transformer;
      this.#transformers.set(resource, transformer);
    }
    return transformer;
  }

  /** One check for each plugin; one for all of them with automatic reload, or where all are of KMS v2. */
  healthChecks(): readonly HealthCheck[] {
    const { plugins, isV2Only } = this.#rules;
    if (!this.#options.reload && plugins.length === 0) return [];
    if (this.#options.reload || isV2Only) return [{ name: "kms-providers", check: () => checkAll(this.#rules) }];
    return plugins.map((plugin, index) => ({ name: `kms-provider-${index}`, check: () => plugin.check() }));
  }

  /** An invalid file, or one whose plugins are not healthy, is reported, and the configuration before it stays. */
  async #reload(): Promise<void> {
    if (this.#reloading) return;
    this.#reloading = true;
    const { log, metrics } = this.#deps;
    const { file } = this.#options;
    try {
      const text = readConfiguration(file);
      if (text === this.#text) return;
      const rules = await loadRules(this.#options, this.#deps, text);
      try {
        await this.#waitForHealth(rules);
      } catch (error) {
        rules[Symbol.dispose]();
        throw error;
      }
      this.#replace(rules, text);
      metrics?.recordReload("success");
      log.info("Reloaded the encryption configuration", { file });
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      metrics?.recordReload("failure");
      log.error("Failed to reload the encryption configuration; the one before stays in use", error, { file });
    } finally {
      this.#reloading = false;
    }
  }

  async #waitForHealth(rules: ResourceTransformers): Promise<void> {
    const { clock } = this.#deps;
    const { signal } = this.#closing;
    const until = clock.monotonic() + Math.max(graceMsOf(rules), NEW_PLUGINS_MS_MIN);
    for (;;) {
      try {
        await checkAll(rules);
        signal.throwIfAborted();
        return;
      } catch (error) {
        signal.throwIfAborted();
        if (clock.monotonic() < until) {
          await clock.sleep(NEW_PLUGINS_POLL_MS, signal);
          continue;
        }
        const why = (error as Error).message;
        throw new Error(
          `health check for new transformers failed, polling error timed out waiting for the condition: ${why}`,
          { cause: error },
        );
      }
    }
  }

  #replace(rules: ResourceTransformers, text: string): void {
    const former = this.#rules;
    this.#rules = rules;
    this.#transformers = new Map();
    this.#text = text;
    if (former.plugins.length === 0) return;
    const timer = this.#deps.clock.timer(graceMsOf(former), () => {
      this.#retired.delete(former);
      former[Symbol.dispose]();
    });
    this.#retired.set(former, timer);
  }
}

/** How long calls of the plugins may take, with a reserve. */
function graceMsOf({ plugins }: ResourceTransformers): number {
  return 2 * plugins.reduce((sum, { checkMs }) => sum + checkMs, 0);
}

/** One after the other, as in Kubernetes; rejects with the errors of all. */
async function checkAll({ plugins }: ResourceTransformers): Promise<void> {
  const errors: string[] = [];
  for (const [index, plugin] of plugins.entries()) {
    await plugin.check().catch((error: Error) => errors.push(`kms-provider-${index}: ${error.message}`));
  }
  if (errors.length > 0) throw new Error(aggregateErrors(errors));
}

async function loadRules(
  { file, reload, kmsV1 = false }: EncryptionOptions,
  { clock, log, metrics }: EncryptionDeps,
  text: string,
): Promise<ResourceTransformers> {
  const configuration = parseEncryptionConfiguration(file, text, reload);
  return await createTransformers(configuration, { kmsV1, clock, log, metrics });
}

const FILE_BYTES_MAX = 3 * 1024 * 1024;

function readConfiguration(file: string): string {
  try {
    const bytes = readFileSync(file);
    if (bytes.length > FILE_BYTES_MAX) throw new Error(`the file has more than ${FILE_BYTES_MAX} bytes`);
    return bytes.toString("utf8");
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? `open ${file}: no such file or directory` : message;
    const what = `error reading encryption provider configuration file ${JSON.stringify(file)}: ${why}`;
    throw new Error(`error while parsing file: error while loading file: ${what}`, { cause });
  }
}
