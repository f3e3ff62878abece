/**
 * Requests credentials from plugins when an image is pulled, and caches them for as long as the plugin allows.
 * Concurrent requests for the same image run the plugin once.
 */
import { access, constants, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ServiceAccount } from "../../api/core/service-account/schema.ts";
import { parseDuration } from "../../schema/value/time.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { CredentialProvidersConfig } from "../agent-config.ts";
import {
  type CredentialProvider,
  CredentialProvidersError,
  readCredentialProviders,
  type TokenAttributes,
} from "../config/credential-providers.ts";
import { podNamespace } from "../pods/pod-fields.ts";
import { type PluginProgram, type PluginRequest, runPlugin } from "./credential-plugin.ts";
import type { PluginResponse } from "./credential-plugin-response.ts";
import type { RegistryAuths } from "./docker-config.ts";
import { matchesImage } from "./image-pattern.ts";

/** Service accounts of the pods whose images are pulled. */
export interface ServiceAccountSource {
  /** Undefined if it does not exist. */
  account(namespace: string, name: string): Promise<ServiceAccount | undefined>;
  /** Requests a token for the pod's service account. */
  token(pod: Pod, audience: string): Promise<string>;
  /** Forgets a pod that is removed. */
  forget(uid: string): void;
}

/** The validated configuration. */
export interface CredentialPlugins {
  readonly providers: readonly CredentialProvider[];
  readonly binDir: string;
}

/** Measures the runs of plugins. */
export interface CredentialPluginObserver {
  onRun(plugin: string, hasFailed: boolean, seconds: number): void;
}

export interface CredentialProvidersOptions extends CredentialPlugins {
  readonly accounts: ServiceAccountSource;
  readonly clock: Clock;
  readonly log: Logger;
  readonly observer?: CredentialPluginObserver | undefined;
}

export interface ProvidedCredentials {
  readonly auths: RegistryAuths;
  /** The plugin returned them for the pod's service account, not for the node. */
  readonly isForAccount: boolean;
}

interface Cached {
  readonly auths: RegistryAuths;
  /** On the wall clock, which advances while the machine sleeps. */
  readonly expiresAt: number;
  /** On the monotonic clock, which cannot be set. */
  readonly expiresAtMonotonic: number;
}

/** The service account that credentials are for; `NO_SUBJECT` for the node. */
interface CredentialSubject {
  readonly key: string;
  readonly request: Partial<PluginRequest>;
}

/** Cached responses of one plugin; beyond that the oldest is removed. */
const CACHED_MAX = 1024;

/** Rejects with a `CredentialProvidersError` when the configuration is invalid or a plugin's program is missing. */
export async function loadPlugins(
  settings: CredentialProvidersConfig | undefined,
): Promise<CredentialPlugins | undefined> {
  if (settings === undefined) return undefined;
  const { config, binDir, tokens } = settings;
  const providers = await readCredentialProviders(config, { tokens });
  await verifyPrograms(providers, binDir);
  return { providers, binDir };
}

async function verifyPrograms(providers: readonly CredentialProvider[], binDir: string): Promise<void> {
  const isDirectory = await stat(binDir).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isDirectory) throw new CredentialProvidersError([`plugin binary directory ${binDir} did not exist`]);
  const problems: string[] = [];
  for (const { name } of providers) {
    const path = join(binDir, name);
    const found = await stat(path).catch(() => undefined);
    if (found?.isFile() !== true) problems.push(`plugin binary executable ${path} did not exist`);
    else await access(path, constants.X_OK).catch(() => problems.push(`plugin binary ${path} is not executable`));
  }
  if (problems.length > 0) throw new CredentialProvidersError(problems);
}

export class CredentialProviders implements Disposable {
  readonly #plugins: readonly Plugin[];
  readonly #options: CredentialProvidersOptions;
  readonly #stop = new AbortController();

  constructor(options: CredentialProvidersOptions) {
    this.#options = options;
    this.#plugins = options.providers.map((provider) => new Plugin(provider, options, this.#stop.signal));
  }

  /** The plugins' credentials for a repository, in the configured order. Logs the error of a plugin that fails. */
  async getCredentials(pod: Pod, repository: string): Promise<readonly ProvidedCredentials[]> {
    const matching = this.#plugins.filter((plugin) => plugin.matches(repository));
    const found = await Promise.all(matching.map((plugin) => plugin.getCredentials(pod, repository)));
    return found.filter((each) => each !== undefined);
  }

  forget(uid: string): void {
    this.#options.accounts.forget(uid);
  }

  /** Terminates running plugins. */
  [Symbol.dispose](): void {
    this.#stop.abort(new Error("the agent stops"));
  }
}

class Plugin {
  readonly #provider: CredentialProvider;
  readonly #options: CredentialProvidersOptions;
  readonly #program: PluginProgram;
  readonly #signal: AbortSignal;
  readonly #cache = new Map<string, Cached>();
  /** Current runs, by subject and image: at most one per pull. */
  readonly #running = new Map<string, Promise<PluginResponse>>();

  constructor(provider: CredentialProvider, options: CredentialProvidersOptions, signal: AbortSignal) {
    this.#provider = provider;
    this.#options = options;
    this.#signal = signal;
    this.#program = {
      path: join(options.binDir, provider.name),
      args: provider.args ?? [],
      env: Object.fromEntries((provider.env ?? []).map(({ name, value }) => [name, value])),
      apiVersion: provider.apiVersion,
    };
  }

  matches(repository: string): boolean {
    return this.#provider.matchImages.some((pattern) => matchesImage(pattern, repository));
  }

  async getCredentials(pod: Pod, repository: string): Promise<ProvidedCredentials | undefined> {
    const { tokenAttributes } = this.#provider;
    try {
      const subject = tokenAttributes === undefined ? NO_SUBJECT : await this.#makeSubject(pod, tokenAttributes);
      if (subject === undefined) return undefined;
      const auths = this.#findCached(repository, subject.key) ?? (await this.#request(pod, repository, subject));
      return { auths, isForAccount: subject.key !== NO_SUBJECT.key };
    } catch (error) {
      this.#signal.throwIfAborted();
      this.#options.log.error("Failed to get credentials from provider", error, { provider: this.#provider.name });
      return undefined;
    }
  }

  #findCached(repository: string, subject: string): RegistryAuths | undefined {
    for (const type of ["Image", "Registry", "Global"] as const) {
      const found = this.#cache.get(cacheKey(type, repository, subject));
      if (found !== undefined && !this.#isExpired(found)) return found.auths;
    }
    return undefined;
  }

  #isExpired({ expiresAt, expiresAtMonotonic }: Cached): boolean {
    const { clock } = this.#options;
    return clock.now() >= expiresAt || clock.monotonic() >= expiresAtMonotonic;
  }

  async #request(pod: Pod, repository: string, subject: CredentialSubject): Promise<RegistryAuths> {
    const key = cacheKey("Image", repository, subject.key);
    const running = this.#running.get(key) ?? this.#run(pod, repository, subject);
    this.#running.set(key, running);
    const response = await running.finally(() => this.#running.delete(key));
    this.#store(response, repository, subject.key);
    return response.auths;
  }

  async #run(pod: Pod, image: string, { request }: CredentialSubject): Promise<PluginResponse> {
    const { clock, accounts, observer } = this.#options;
    const audience = this.#provider.tokenAttributes?.serviceAccountTokenAudience;
    const withToken = audience !== undefined && request.serviceAccountAnnotations !== undefined;
    const serviceAccountToken = withToken ? await accounts.token(pod, audience) : undefined;
    const fullRequest = {
      image,
      ...(serviceAccountToken === undefined ? {} : { serviceAccountToken }),
      ...omitEmptyAnnotations(request),
    };
    const began = clock.monotonic();
    let hasFailed = true;
    try {
      const response = await runPlugin(this.#program, fullRequest, clock, this.#signal);
      hasFailed = false;
      return response;
    } finally {
      observer?.onRun(this.#provider.name, hasFailed, (clock.monotonic() - began) / 1000);
    }
  }

  #store(response: PluginResponse, repository: string, subject: string): void {
    const { clock } = this.#options;
    const defaultMs = Number((parseDuration(this.#provider.defaultCacheDuration ?? "0s") ?? 0n) / 1_000_000n);
    const cacheMs = response.cacheMs ?? defaultMs;
    if (cacheMs <= 0) return;
    for (const [key, cached] of this.#cache) if (this.#isExpired(cached)) this.#cache.delete(key);
    const [oldest] = this.#cache.keys();
    if (this.#cache.size >= CACHED_MAX && oldest !== undefined) this.#cache.delete(oldest);
    const cached = {
      auths: response.auths,
      expiresAt: clock.now() + cacheMs,
      expiresAtMonotonic: clock.monotonic() + cacheMs,
    };
    this.#cache.set(cacheKey(response.cacheKeyType, repository, subject), cached);
  }

  /** Undefined: the plugin does not run, because the pod has no service account with the required annotations. */
  async #makeSubject(pod: Pod, attributes: TokenAttributes): Promise<CredentialSubject | undefined> {
    const name = pod.spec?.serviceAccountName ?? "";
    if (name === "") return attributes.requireServiceAccount === true ? undefined : NO_SUBJECT;
    const namespace = podNamespace(pod);
    const account = await this.#options.accounts.account(namespace, name);
    if (account === undefined) throw new Error(`service account ${namespace}/${name} not found`);
    const { annotations = {}, uid = "" } = account.metadata ?? {};
    const required = attributes.requiredServiceAccountAnnotationKeys ?? [];
    const missing = required.filter((key) => !Object.hasOwn(annotations, key));
    if (missing.length > 0) {
      const fields = { provider: this.#provider.name, account: `${namespace}/${name}`, missing: missing.join(", ") };
      this.#options.log.v(5)?.info("Service account lacks annotations that a credential provider needs", fields);
      return undefined;
    }
    const keys = [...required, ...(attributes.optionalServiceAccountAnnotationKeys ?? [])].sort();
    const selected = keys.flatMap((key) =>
      Object.hasOwn(annotations, key) ? [[key, annotations[key]!] as const] : [],
    );
    const key = JSON.stringify([namespace, name, uid, selected]);
    return { key, request: { serviceAccountAnnotations: Object.fromEntries(selected) } };
  }
}

const NO_SUBJECT: CredentialSubject = { key: "", request: {} };

/** JSON separates the parts, so that no image has the key of another image's registry. */
function cacheKey(type: PluginResponse["cacheKeyType"], repository: string, subject: string): string {
  const of = type === "Global" ? "" : type === "Registry" ? repository.split("/")[0] : repository;
  return JSON.stringify([type, of, subject]);
}

/** Plugins do not get an empty object of annotations. */
function omitEmptyAnnotations({ serviceAccountAnnotations = {} }: Partial<PluginRequest>): Partial<PluginRequest> {
  return Object.keys(serviceAccountAnnotations).length === 0 ? {} : { serviceAccountAnnotations };
}
