/** The authorizers of --authorization-mode, or of --authorization-config, which is reloaded when it changes. */
import type { AuthorizerSettings } from "../../auth/authz/authorization-configuration.ts";
import {
  type AuthorizerOptions,
  createAuthorizer,
  createAuthorizerChain,
  createModeAuthorizer,
} from "../../auth/authz/modes.ts";
import type { WebhookObserver } from "../../auth/authz/webhook/webhook.ts";
import type { Authorizer } from "../../auth/user.ts";
import type { Connector } from "../../client/transport/connector.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import { watchFiles } from "../../std/fs/watch-files.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { CONFIGURATION_BYTES_MAX, readFlagFile } from "../config/flag-file.ts";

export interface AuthorizersDeps extends Omit<AuthorizerOptions, "fromFiles"> {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** How to connect to webhooks; undefined: directly. */
  readonly connector?: Connector | undefined;
  readonly observer?: (WebhookObserver & ReloadObserver) | undefined;
}

export interface ReloadObserver {
  /** Called after each reload of `--authorization-config`. */
  reloaded?(succeeded: boolean): void;
}

export interface Authorizers extends AsyncDisposable {
  readonly authorizer: Authorizer;
  /** Whether the chain may contain the mode, now or after a reload. */
  uses(mode: string): boolean;
}

type Config = Pick<ApiServerConfig, "authorizationModes" | "authorization">;

/** Throws one sentence for invalid flags and files. */
export async function openAuthorizers(config: Config, deps: AuthorizersDeps): Promise<Authorizers> {
  const { configFile } = config.authorization;
  return configFile === undefined ? await openFromFlags(config, deps) : await openFromFile(configFile, config, deps);
}

async function openFromFlags({ authorizationModes: modes, authorization }: Config, deps: AuthorizersDeps) {
  const { policyFile, webhook } = authorization;
  const authorizers = new Map<string, Authorizer>();
  await using stack = new AsyncDisposableStack();
  checkModeFile(modes, "ABAC", "authorization-policy-file", policyFile);
  checkModeFile(modes, "Webhook", "authorization-webhook-config-file", webhook.file);
  if (policyFile !== undefined)
    authorizers.set("ABAC", await (await import("./abac-file.ts")).openAbacFile(policyFile, deps.log));
  if (webhook.file !== undefined) {
    const settings = { ...webhook, file: webhook.file, failurePolicy: "NoOpinion", matchConditions: [] } as const;
    const { openWebhook } = await import("./webhook-file.ts");
    authorizers.set("Webhook", await openWebhook("default", settings, deps, stack));
  }
  const authorizer = createModeAuthorizer(modes, { ...deps, fromFiles: authorizers });
  const owned = stack.move();
  return {
    authorizer,
    uses: (mode: string) => modes.includes(mode),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function checkModeFile(modes: readonly string[], mode: string, flag: string, file: string | undefined): void {
  const has = modes.includes(mode);
  if (has && file === undefined) {
    throw new Error(`Cannot use --authorization-mode=${modes.join(",")}: mode ${mode} needs --${flag}`);
  }
  if (!has && file !== undefined) throw new Error(`Cannot use --${flag} without --authorization-mode=…,${mode}`);
}

/** After a reload with an invalid file the previous authorizers stay in use; the error is logged once. */
async function openFromFile(path: string, config: Config, deps: AuthorizersDeps): Promise<Authorizers> {
  const read = (): Promise<string> => readFlagFile("--authorization-config", path, CONFIGURATION_BYTES_MAX);
  let text = await read();
  let chain = await openAuthorizerChain(path, text, config, deps);
  let reloading: Promise<void> | undefined;
  const reload = async (): Promise<void> => {
    let found: string | undefined;
    try {
      found = await read();
      if (found === text) return;
      text = found;
      const next = await openAuthorizerChain(path, text, config, deps);
      const previous = chain;
      chain = next;
      deps.observer?.reloaded?.(true);
      deps.log.info("Reloaded the authorization configuration", { file: path });
      await previous[Symbol.asyncDispose]();
    } catch (error) {
      deps.observer?.reloaded?.(false);
      deps.log.error("Cannot reload the authorization configuration; the previous one stays in use", error);
    }
  };
  const watching = watchFiles([path], deps.clock, () => {
    reloading = (reloading ?? Promise.resolve()).then(reload);
  });
  return {
    authorizer: {
      authorize: (attributes) => chain.authorizer.authorize(attributes),
      rulesFor: (user, namespace) => chain.authorizer.rulesFor!(user, namespace),
    },
    uses: () => true,
    async [Symbol.asyncDispose]() {
      watching[Symbol.dispose]();
      await reloading;
      await chain[Symbol.asyncDispose]();
    },
  };
}

interface AuthorizerChain extends AsyncDisposable {
  readonly authorizer: Authorizer;
}

async function openAuthorizerChain(
  path: string,
  text: string,
  config: Config,
  deps: AuthorizersDeps,
): Promise<AuthorizerChain> {
  const { parseAuthorizationConfiguration } = await import("../../auth/authz/authorization-configuration.ts");
  const settings = parseAuthorizationConfiguration(path, text);
  await using stack = new AsyncDisposableStack();
  const authorizers = new Map<string, Authorizer>();
  for (const each of settings) authorizers.set(each.name, await openAuthorizer(each, config, deps, stack));
  const authorizer = createAuthorizerChain(settings, (_type, name) => authorizers.get(name)!, deps.observe);
  const owned = stack.move();
  return { authorizer, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Opens one authorizer of a configuration file. */
export async function openAuthorizer(
  { type, name, webhook }: AuthorizerSettings,
  { authorization }: Config,
  deps: AuthorizersDeps,
  stack: AsyncDisposableStack,
): Promise<Authorizer> {
  if (webhook !== undefined) {
    return await (await import("./webhook-file.ts")).openWebhook(name, webhook, deps, stack);
  }
  if (type !== "ABAC") return createAuthorizer(type, deps);
  const { policyFile } = authorization;
  if (policyFile === undefined)
    throw new Error(`Cannot use authorizer ${name}: ABAC needs --authorization-policy-file`);
  return await (await import("./abac-file.ts")).openAbacFile(policyFile, deps.log);
}
