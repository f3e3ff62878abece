/**
 * `svc webhooks`: suspends admission webhooks in the store of an API server that is stopped. It is for clusters that a
 * webhook has locked; while the server answers, `kubectl annotate` does the same.
 */
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { SUSPENDED } from "../../admission/webhooks/webhook-source.ts";
import { mutatingWebhookConfigurationKind } from "../../api/admissionregistration/webhook-configuration/mutating-kind.ts";
import type {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
} from "../../api/admissionregistration/webhook-configuration/schema.ts";
import { validatingWebhookConfigurationKind } from "../../api/admissionregistration/webhook-configuration/validating-kind.ts";
import type { Kind } from "../../api/kind.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { ObjectStore } from "../../storage/object-store.ts";
import { openStore } from "../../storage/open.ts";
import { type Store, StoreError } from "../../storage/store.ts";

const USAGE = `Usage: svc webhooks list|suspend NAME|resume NAME [flags]

Shows the configurations of admission webhooks, or lets all requests go past the webhooks of one, as if they were not
there, until they are resumed. The API server must be stopped.

  --webhook NAMES            only these webhooks of the configuration, with commas between them (default all)
  --data-dir DIR             where svc up keeps the cluster's state (default /var/lib/svc)
  --kvstore-servers URL      the store of an API server that was started otherwise: level:///PATH
  --kvstore-prefix PREFIX    prefix of all stored resource paths (default /registry)
`;

type Configuration = ValidatingWebhookConfiguration | MutatingWebhookConfiguration;

const kinds = [validatingWebhookConfigurationKind, mutatingWebhookConfigurationKind] as readonly unknown[];

export async function run(argv: readonly string[]): Promise<number> {
  if (argv.some((word) => word === "--help" || word === "-h")) {
    process.stdout.write(USAGE);
    return 0;
  }
  try {
    process.stdout.write(await answer(argv));
    return 0;
  } catch (error) {
    process.stderr.write(`svc webhooks: ${(error as Error).message}\n`);
    return 1;
  }
}

/** What is printed. Rejects with one sentence for the operator. */
export async function answer(argv: readonly string[]): Promise<string> {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      webhook: { type: "string" },
      "data-dir": { type: "string", default: "/var/lib/svc" },
      "kvstore-servers": { type: "string" },
      "kvstore-prefix": { type: "string", default: "/registry" },
    },
  });
  const [verb = "", name = "", ...more] = positionals;
  const isKnown = verb === "list" ? name === "" : (verb === "suspend" || verb === "resume") && name !== "";
  if (!isKnown || more.length > 0) throw new Error(`expected list, suspend NAME or resume NAME\n\n${USAGE}`);
  const url = values["kvstore-servers"] ?? `level://${values["data-dir"]}/kvstore`;
  await using store = await open(url);
  const all = kinds.map((kind) => {
    return new ObjectStore({ store, kind: kind as Kind<Configuration>, prefix: values["kvstore-prefix"] });
  });
  if (verb === "list") return await list(all);
  return await change(all, name, verb === "suspend" ? (values.webhook ?? "true") : undefined);
}

async function open(url: string): Promise<Store> {
  const directory = /^level:\/\/(.+)$/.exec(url)?.[1];
  if (directory === undefined)
    throw new Error(`Cannot open ${url}: expected level:///PATH, the store of an API server`);
  // Whoever opens a store makes it.
  if (!existsSync(decodeURIComponent(directory))) throw new Error(`Cannot open ${url}: there is no such directory`);
  try {
    return await openStore({ url, clock: systemClock, log: silentLogger, compactionIntervalMs: 0 });
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== "locked") throw error;
    const why = "it is in use: stop the API server, or use kubectl annotate while it answers";
    throw new Error(`Cannot open ${url}: ${why}`, { cause: error });
  }
}

type Objects = ObjectStore<Configuration>;

async function list(all: readonly Objects[]): Promise<string> {
  const lines: string[] = [];
  for (const objects of all) {
    for (const { metadata, webhooks = [] } of (await objects.list(objects.prefix())).items) {
      const suspended = metadata?.annotations?.[SUSPENDED];
      const state = suspended === undefined ? "called" : `suspended: ${suspended === "true" ? "all" : suspended}`;
      const names = webhooks.map((webhook) => webhook.name).join(",");
      lines.push(`${objects.kind.kind} ${metadata?.name} (${names}): ${state}\n`);
    }
  }
  return lines.length === 0 ? "There are no admission webhooks.\n" : lines.join("");
}

/** `value` undefined takes the annotation away. */
async function change(all: readonly Objects[], name: string, value: string | undefined): Promise<string> {
  const texts: string[] = [];
  for (const objects of all) {
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
  const known = webhooks.map((webhook) => webhook.name);
  const unknown = value.split(",").find((one) => !known.includes(one.trim()));
  if (unknown === undefined) return;
  throw new Error(`there is no webhook named ${JSON.stringify(unknown)}; there are ${known.join(", ")}`);
}

function annotated(configuration: Configuration, value: string | undefined): Configuration {
  const { [SUSPENDED]: _, ...others } = configuration.metadata?.annotations ?? {};
  const annotations = value === undefined ? others : { ...others, [SUSPENDED]: value };
  return { ...configuration, metadata: { ...configuration.metadata, annotations } };
}
