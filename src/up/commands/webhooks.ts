/**
 * `svc webhooks`: suspends admission webhooks in the store of an API server that is stopped. It is for clusters whose
 * webhooks reject the requests that would repair them; while the server runs, `kubectl annotate` does the same.
 */
import { existsSync } from "node:fs";
import { SUSPENDED } from "../../admission/webhooks/webhook-source.ts";
import { mutatingWebhookConfigurationKind } from "../../api/admissionregistration/webhook-configuration/mutating.ts";
import type {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
} from "../../api/admissionregistration/webhook-configuration/schema.ts";
import { validatingWebhookConfigurationKind } from "../../api/admissionregistration/webhook-configuration/validating-kind.ts";
import type { Kind } from "../../api/kind.ts";
import { type CommandInvocation, invokeCommand } from "../../flags/commands.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { ObjectStore } from "../../storage/object-store.ts";
import { openStore } from "../../storage/open.ts";
import { type Store, StoreError } from "../../storage/store.ts";
import { type webhooksFlags, webhooksProgram } from "./webhooks-flags.ts";

type Configuration = ValidatingWebhookConfiguration | MutatingWebhookConfiguration;

const kinds = [validatingWebhookConfigurationKind, mutatingWebhookConfigurationKind] as readonly unknown[];

export async function run(argv: readonly string[]): Promise<number> {
  const invocation = await invokeCommand(webhooksProgram, argv);
  if (invocation.kind === "exit") {
    process.stdout.write(invocation.stdout);
    process.stderr.write(invocation.stderr);
    return invocation.code;
  }
  try {
    process.stdout.write(await runWebhooksCommand(invocation));
    return 0;
  } catch (error) {
    process.stderr.write(`svc webhooks: ${(error as Error).message}\n`);
    return 1;
  }
}

/** Resolves with the text to print. Rejects with an error in one sentence, for the operator. */
export async function runWebhooksCommand({
  verb,
  args,
  flags,
}: Pick<CommandInvocation<typeof webhooksFlags>, "verb" | "args" | "flags">): Promise<string> {
  const url = flags["kvstore-servers"] || `level://${flags["data-dir"]}/kvstore`;
  await using store = await open(url);
  const stores = kinds.map((kind) => {
    return new ObjectStore({ store, kind: kind as Kind<Configuration>, prefix: flags["kvstore-prefix"] });
  });
  const { name = "" } = args;
  switch (verb) {
    case "suspend":
      return await setSuspended(stores, name, flags.webhook.length === 0 ? "true" : flags.webhook.join(","));
    case "resume":
      return await setSuspended(stores, name, undefined);
    default:
      return await list(stores);
  }
}

async function open(url: string): Promise<Store> {
  const directory = /^level:\/\/(.+)$/.exec(url)?.[1];
  if (directory === undefined)
    throw new Error(`Cannot open ${url}: expected level:///PATH, the store of an API server`);
  // Opening a store creates its directory.
  if (!existsSync(decodeURIComponent(directory))) throw new Error(`Cannot open ${url}: there is no such directory`);
  try {
    return await openStore({ urls: [url], clock: systemClock, log: silentLogger, compactionIntervalMs: 0 });
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== "locked") throw error;
    const why = "it is in use: stop the API server, or use kubectl annotate while it answers";
    throw new Error(`Cannot open ${url}: ${why}`, { cause: error });
  }
}

type ConfigurationStore = ObjectStore<Configuration>;

async function list(stores: readonly ConfigurationStore[]): Promise<string> {
  const lines: string[] = [];
  for (const objects of stores) {
    for (const { metadata, webhooks = [] } of (await objects.list(objects.prefix())).items) {
      const suspended = metadata?.annotations?.[SUSPENDED];
      const state = suspended === undefined ? "called" : `suspended: ${suspended === "true" ? "all" : suspended}`;
      const names = webhooks.map((webhook) => webhook.name).join(",");
      lines.push(`${objects.kind.kind} ${metadata?.name} (${names}): ${state}\n`);
    }
  }
  return lines.length === 0 ? "There are no admission webhooks.\n" : lines.join("");
}

/** Sets the annotation of the configurations with this name; `value` undefined removes it. */
async function setSuspended(
  stores: readonly ConfigurationStore[],
  name: string,
  value: string | undefined,
): Promise<string> {
  const texts: string[] = [];
  for (const objects of stores) {
    const key = objects.key(undefined, name);
    const before = await objects.get(key);
    if (before === undefined) continue;
    checkNames(before, value);
    await objects.guaranteedUpdate(key, (configuration) => annotated(configuration, value));
    const { kind, singular } = objects.kind;
    texts.push(
      value === undefined
        ? `${kind} ${name} is called again.\n`
        : `${kind} ${name} is suspended. Start the API server; when the webhook answers again:\n` +
            `  kubectl annotate ${singular} ${name} ${SUSPENDED}-\n` +
            `or, while the API server is stopped: svc webhooks resume ${name}\n`,
    );
  }
  if (texts.length === 0) throw new Error(`there is no configuration named ${name}; svc webhooks list shows all`);
  return texts.join("");
}

function checkNames({ webhooks = [] }: Configuration, value: string | undefined): void {
  if (value === undefined || value === "true") return;
  const names = webhooks.map((webhook) => webhook.name);
  const unknown = value.split(",").find((one) => !names.includes(one.trim()));
  if (unknown === undefined) return;
  throw new Error(`there is no webhook named ${JSON.stringify(unknown)}; there are ${names.join(", ")}`);
}

function annotated(configuration: Configuration, value: string | undefined): Configuration {
  const { [SUSPENDED]: _, ...others } = configuration.metadata?.annotations ?? {};
  const annotations = value === undefined ? others : { ...others, [SUSPENDED]: value };
  return { ...configuration, metadata: { ...configuration.metadata, annotations } };
}
