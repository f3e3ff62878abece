/** The authorizers of --authorization-mode, or of --authorization-config, which is reloaded when it changes. */
import type { SubjectAccessReviewStatus } from "../../api/authorization/access-review/schema.ts";
import { abacAuthorizer } from "../../auth/authz/abac/abac.ts";
import { parseAbacFile } from "../../auth/authz/abac/policy-file.ts";
import {
  type AuthorizerSettings,
  parseAuthorizationConfiguration,
  type WebhookSettings,
} from "../../auth/authz/authorization-configuration.ts";
import {
  type AuthorizerOptions,
  createAuthorizer,
  createAuthorizerChain,
  createModeAuthorizer,
} from "../../auth/authz/modes.ts";
import { type WebhookObserver, webhookAuthorizer } from "../../auth/authz/webhook/webhook.ts";
import type { Authorizer } from "../../auth/user.ts";
import { kubeconfigTransport } from "../../client/kubeconfig/kubeconfig-transport.ts";
import { loadWebhookKubeconfig } from "../../client/kubeconfig/webhook-kubeconfig.ts";
import { readAll, readError } from "../../client/response.ts";
import { makeRequest } from "../../http/request.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import { watchFiles } from "../../std/fs/watch-files.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { readFlagFile } from "../config/flag-file.ts";

export interface AuthorizersDeps extends Omit<AuthorizerOptions, "fromFiles"> {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
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
  if (policyFile !== undefined) authorizers.set("ABAC", await loadAbac(policyFile, deps.log));
  if (webhook.file !== undefined) {
    const settings = { ...webhook, file: webhook.file, failurePolicy: "NoOpinion", matchConditions: [] } as const;
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

async function loadAbac(path: string, log: Logger): Promise<Authorizer> {
  const { policies, warnings } = parseAbacFile(path, await readFlagFile("--authorization-policy-file", path));
  for (const warning of warnings) log.warn(warning);
  return abacAuthorizer(policies);
}

/** After a reload with an invalid file the previous authorizers stay in use; the error is logged once. */
async function openFromFile(path: string, config: Config, deps: AuthorizersDeps): Promise<Authorizers> {
  const read = (): Promise<string> => readFlagFile("--authorization-config", path);
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
  const settings = parseAuthorizationConfiguration(path, text);
  await using stack = new AsyncDisposableStack();
  const authorizers = new Map<string, Authorizer>();
  for (const each of settings) authorizers.set(each.name, await openAuthorizer(each, config, deps, stack));
  const authorizer = createAuthorizerChain(settings, (_type, name) => authorizers.get(name)!, deps.observe);
  const owned = stack.move();
  return { authorizer, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function openAuthorizer(
  { type, name, webhook }: AuthorizerSettings,
  { authorization }: Config,
  deps: AuthorizersDeps,
  stack: AsyncDisposableStack,
): Promise<Authorizer> {
  if (webhook !== undefined) return await openWebhook(name, webhook, deps, stack);
  if (type !== "ABAC") return createAuthorizer(type, deps);
  const { policyFile } = authorization;
  if (policyFile === undefined)
    throw new Error(`Cannot use authorizer ${name}: ABAC needs --authorization-policy-file`);
  return await loadAbac(policyFile, deps.log);
}

async function openWebhook(
  name: string,
  settings: WebhookSettings,
  deps: AuthorizersDeps,
  stack: AsyncDisposableStack,
): Promise<Authorizer> {
  const { clock } = deps;
  const file = await loadWebhookKubeconfig(settings.file);
  const { pathname: path, search } = new URL(file.server);
  const transport = stack.use(kubeconfigTransport(file, { clock, userAgent: "svc-apiserver" }));
  const apiVersion = `authorization.k8s.io/${settings.version}`;
  return webhookAuthorizer({
    ...deps,
    ...settings,
    observe: deps.observer,
    name,
    async review(spec) {
      const { groups, ...rest } = spec;
      const reviewSpec =
        settings.version === "v1" ? spec : { ...rest, ...(groups === undefined ? {} : { group: groups }) };
      const review = { kind: "SubjectAccessReview", apiVersion, metadata: {}, spec: reviewSpec };
      const headers = { "content-type": "application/json", accept: "application/json" };
      const signal = AbortSignal.timeout(settings.timeoutMs);
      const request = { method: "POST", path, query: search.slice(1), headers, body: JSON.stringify(review), signal };
      const response = await transport(makeRequest(request));
      if (response.status < 200 || response.status > 299) throw await readError(response);
      return parseReviewStatus((await readAll(response.body, ANSWER_BYTES_MAX)).toString());
    },
  });
}

/** The maximum size of a webhook's response. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

function parseReviewStatus(text: string): SubjectAccessReviewStatus {
  let review: unknown;
  try {
    review = JSON.parse(text);
  } catch (cause) {
    throw new Error("the webhook's response is not a SubjectAccessReview: it is not JSON", { cause });
  }
  const status = isPlainObject(review) ? (review as Readonly<Record<string, unknown>>).status : undefined;
  if (!isPlainObject(status)) throw new Error("the webhook's response is not a SubjectAccessReview: it has no status");
  const { allowed = false, denied = false, reason = "" } = status as Readonly<Record<string, unknown>>;
  if (typeof allowed !== "boolean" || typeof denied !== "boolean" || typeof reason !== "string") {
    throw new Error("the webhook's response is not a SubjectAccessReview: allowed and denied must be true or false");
  }
  return { allowed, denied, reason };
}
