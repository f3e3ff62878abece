/**
 * Credentials that plugins know, asked for when an image is pulled and remembered for as long as they may be. An image
 * that is asked for twice at once costs one run of the plugin.
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
import { type PluginProgram, type PluginRequest, type PluginResponse, runPlugin } from "./credential-plugin.ts";
import type { RegistryAuths } from "./docker-config.ts";
import { matchesImage } from "./image-pattern.ts";

/** Of the pods whose images are pulled. */
export interface ServiceAccountSource {
  /** Undefined when there is none of the name. */
  account(namespace: string, name: string): Promise<ServiceAccount | undefined>;
  /** A token for the pod's account. */
  token(pod: Pod, audience: string): Promise<string>;
  /** The pod is gone. */
  forget(uid: string): void;
}

/** What is configured, read and checked. */
export interface CredentialPlugins {
  readonly providers: readonly CredentialProvider[];
  readonly binDir: string;
}

export interface CredentialProvidersOptions extends CredentialPlugins {
  readonly accounts: ServiceAccountSource;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface ProvidedCredentials {
  readonly auths: RegistryAuths;
  /** They were given to the pod's account, not to the node. */
  readonly isForAccount: boolean;
}

interface Cached {
  readonly auths: RegistryAuths;
  /** By the time of day, which goes on while the machine sleeps, and on the monotonic clock, which nobody sets. */
  readonly until: number;
  readonly untilTick: number;
}

/** Whom the plugin is asked for. */
interface CredentialSubject {
  readonly key: string;
  readonly request: Partial<PluginRequest>;
}

/** Answers kept of one plugin; beyond that the oldest is forgotten. */
const CACHED_MAX = 1024;

/** Rejects with a `CredentialProvidersError` when the configuration is wrong, or a plugin's program not there. */
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
  const isThere = await stat(binDir).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isThere) throw new CredentialProvidersError([`plugin binary directory ${binDir} did not exist`]);
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

  /** What the plugins give for a repository, in their order. A plugin that fails gives nothing, and that is logged. */
  async getCredentials(pod: Pod, repository: string): Promise<readonly ProvidedCredentials[]> {
    const asked = this.#plugins.filter((plugin) => plugin.matches(repository));
    const found = await Promise.all(asked.map((plugin) => plugin.getCredentials(pod, repository)));
    return found.filter((each) => each !== undefined);
  }

  forget(uid: string): void {
    this.#options.accounts.forget(uid);
  }

  /** Ends the plugins that run. */
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
  /** Runs under way, by who asks and for what: at most one a pull. */
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
      const asker = tokenAttributes === undefined ? NO_SUBJECT : await this.#asker(pod, tokenAttributes);
      if (asker === undefined) return undefined;
      const auths = this.#cached(repository, asker.key) ?? (await this.#ask(pod, repository, asker));
      return { auths, isForAccount: asker.key !== NO_SUBJECT.key };
    } catch (error) {
      this.#signal.throwIfAborted();
      this.#options.log.error("Cannot get credentials from provider", error, { provider: this.#provider.name });
      return undefined;
    }
  }

  #cached(repository: string, asker: string): RegistryAuths | undefined {
    for (const type of ["Image", "Registry", "Global"] as const) {
      const found = this.#cache.get(cacheKey(type, repository, asker));
      if (found !== undefined && !this.#isOver(found)) return found.auths;
    }
    return undefined;
  }

  #isOver({ until, untilTick }: Cached): boolean {
    const { clock } = this.#options;
    return clock.now() >= until || clock.monotonic() >= untilTick;
  }

  async #ask(pod: Pod, repository: string, asker: CredentialSubject): Promise<RegistryAuths> {
    const key = cacheKey("Image", repository, asker.key);
    const running = this.#running.get(key) ?? this.#run(pod, repository, asker);
    this.#running.set(key, running);
    const answer = await running.finally(() => this.#running.delete(key));
    this.#remember(answer, repository, asker.key);
    return answer.auths;
  }

  async #run(pod: Pod, image: string, { request }: CredentialSubject): Promise<PluginResponse> {
    const { clock, accounts } = this.#options;
    const audience = this.#provider.tokenAttributes?.serviceAccountTokenAudience;
    const isTrusted = audience !== undefined && request.serviceAccountAnnotations !== undefined;
    const serviceAccountToken = isTrusted ? await accounts.token(pod, audience) : undefined;
    const whole = {
      image,
      ...(serviceAccountToken === undefined ? {} : { serviceAccountToken }),
      ...omitEmptyAnnotations(request),
    };
    return await runPlugin(this.#program, whole, clock, this.#signal);
  }

  #remember(answer: PluginResponse, repository: string, asker: string): void {
    const { clock } = this.#options;
    const usual = Number((parseDuration(this.#provider.defaultCacheDuration ?? "0s") ?? 0n) / 1_000_000n);
    const lifeMs = answer.cacheMs ?? usual;
    if (lifeMs <= 0) return;
    for (const [key, cached] of this.#cache) if (this.#isOver(cached)) this.#cache.delete(key);
    const [oldest] = this.#cache.keys();
    if (this.#cache.size >= CACHED_MAX && oldest !== undefined) this.#cache.delete(oldest);
    const cached = { auths: answer.auths, until: clock.now() + lifeMs, untilTick: clock.monotonic() + lifeMs };
    this.#cache.set(cacheKey(answer.cacheKeyType, repository, asker), cached);
  }

  /** Undefined: the plugin is not asked for this pod, because its account lacks what the plugin needs. */
  async #asker(pod: Pod, wanted: TokenAttributes): Promise<CredentialSubject | undefined> {
    const name = pod.spec?.serviceAccountName ?? "";
    if (name === "") return wanted.requireServiceAccount === true ? undefined : NO_SUBJECT;
    const namespace = podNamespace(pod);
    const account = await this.#options.accounts.account(namespace, name);
    if (account === undefined) throw new Error(`service account ${namespace}/${name} not found`);
    const { annotations = {}, uid = "" } = account.metadata ?? {};
    const needed = wanted.requiredServiceAccountAnnotationKeys ?? [];
    const missing = needed.filter((key) => annotations[key] === undefined);
    if (missing.length > 0) {
      const fields = { provider: this.#provider.name, account: `${namespace}/${name}`, missing: missing.join(", ") };
      this.#options.log.v(5)?.info("Service account lacks annotations that a credential provider needs", fields);
      return undefined;
    }
    const keys = [...needed, ...(wanted.optionalServiceAccountAnnotationKeys ?? [])].sort();
    const told = keys.flatMap((key) => (annotations[key] === undefined ? [] : [[key, annotations[key]] as const]));
    const key = JSON.stringify([namespace, name, uid, told]);
    return { key, request: { serviceAccountAnnotations: Object.fromEntries(told) } };
  }
}

const NO_SUBJECT: CredentialSubject = { key: "", request: {} };

/** Every part is told apart, so that no image reads like another's registry. */
function cacheKey(type: PluginResponse["cacheKeyType"], repository: string, asker: string): string {
  const of = type === "Global" ? "" : type === "Registry" ? repository.split("/")[0] : repository;
  return JSON.stringify([type, of, asker]);
}

/** Plugins see no empty annotations. */
function omitEmptyAnnotations({ serviceAccountAnnotations = {} }: Partial<PluginRequest>): Partial<PluginRequest> {
  return Object.keys(serviceAccountAnnotations).length === 0 ? {} : { serviceAccountAnnotations };
}
