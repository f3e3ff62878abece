/** The webhooks of all configurations, in the order in which they are called. */
import { createAdmissionEnvironment } from "../../api/admissionregistration/expressions.ts";
import type {
  MutatingWebhook,
  MutatingWebhookConfiguration,
  ValidatingWebhook,
  ValidatingWebhookConfiguration,
} from "../../api/admissionregistration/webhook-configuration/schema.ts";
import { type Requirement, requirementsOf } from "../../api/meta/selectors/selector.ts";
import type { Logger } from "../../std/log/logger.ts";
import { type MatchConditions, matchConditions } from "../matching/match-conditions.ts";

export type Configuration = MutatingWebhookConfiguration | ValidatingWebhookConfiguration;

export type ConfigurationKind = "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration";

export interface ConfiguredWebhook {
  readonly kind: ConfigurationKind;
  readonly definition: MutatingWebhook | ValidatingWebhook;
  readonly configuration: Configuration;
  /** Unique: `CONFIGURATION/WEBHOOK/INDEX`. */
  readonly id: string;
  readonly namespaces: readonly Requirement[];
  readonly objects: readonly Requirement[];
  readonly conditions: MatchConditions | undefined;
  readonly failsOpen: boolean;
}

/**
 * Annotation of a configuration that suspends all its webhooks (`true`) or those of a list
 * (`a.example.com,b.example.com`).
 */
export const SUSPENDED = "webhooks.svc.io/suspended";

interface CompiledConfiguration {
  readonly resourceVersion: string | undefined;
  readonly webhooks: readonly ConfiguredWebhook[];
}

/** Compiles selectors and expressions once for each version of a configuration. */
export class WebhookSource {
  readonly #kind: ConfigurationKind;
  readonly #log: Logger;
  /** By the name of the configuration. */
  #compiled: ReadonlyMap<string, CompiledConfiguration> = new Map();
  #last: readonly Configuration[] = [];
  #webhooks: readonly ConfiguredWebhook[] = [];

  constructor(kind: ConfigurationKind, log: Logger) {
    this.#kind = kind;
    this.#log = log;
  }

  webhooksOf(configurations: readonly Configuration[]): readonly ConfiguredWebhook[] {
    if (isSame(configurations, this.#last)) return this.#webhooks;
    const before = this.#compiled;
    const sorted = configurations.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    this.#compiled = new Map(sorted.map((one) => [nameOf(one), this.#compile(one, before.get(nameOf(one)))]));
    this.#webhooks = [...this.#compiled.values()].flatMap(({ webhooks }) => webhooks);
    this.#last = configurations;
    return this.#webhooks;
  }

  #compile(configuration: Configuration, before: CompiledConfiguration | undefined): CompiledConfiguration {
    const { resourceVersion } = configuration.metadata ?? {};
    if (before !== undefined && before.resourceVersion === resourceVersion) return before;
    const all = compileWebhooks(this.#kind, configuration);
    const active = all.filter(({ definition: webhook }) => !isSuspended(configuration, webhook.name));
    if (active.length < all.length) {
      this.#log.warn("Webhooks are suspended and not called", {
        configuration: nameOf(configuration),
        annotation: SUSPENDED,
        webhooks: all.length - active.length,
      });
    }
    return { resourceVersion, webhooks: active };
  }
}

function isSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((one, i) => one === b[i]);
}

function compileWebhooks(kind: ConfigurationKind, configuration: Configuration): readonly ConfiguredWebhook[] {
  return (configuration.webhooks ?? []).map((webhook, index) => {
    const { matchConditions: conditions = [], failurePolicy } = webhook;
    const failsOpen = failurePolicy === "Ignore";
    return {
      kind,
      definition: webhook,
      configuration,
      id: `${nameOf(configuration)}/${webhook.name}/${index}`,
      namespaces: requirementsOf(webhook.namespaceSelector ?? {}),
      objects: requirementsOf(webhook.objectSelector ?? {}),
      conditions:
        conditions.length === 0
          ? undefined
          : matchConditions(conditions, createAdmissionEnvironment({ stored: true }), failsOpen),
      failsOpen,
    };
  });
}

export function isSuspended({ metadata }: Configuration, webhook: string): boolean {
  const value = metadata?.annotations?.[SUSPENDED];
  if (value === undefined || value === "" || value === "false") return false;
  return value === "true" || value.split(",").some((name) => name.trim() === webhook);
}

export function nameOf({ metadata }: Configuration): string {
  return metadata?.name ?? "";
}
