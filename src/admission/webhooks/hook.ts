/** The webhooks of all configurations, in the order in which they are asked. */
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

export interface Hook {
  readonly kind: ConfigurationKind;
  readonly webhook: MutatingWebhook | ValidatingWebhook;
  readonly configuration: Configuration;
  /** Tells it from all others: `CONFIGURATION/WEBHOOK/0`. */
  readonly id: string;
  readonly namespaces: readonly Requirement[];
  readonly objects: readonly Requirement[];
  readonly conditions: MatchConditions | undefined;
  readonly failsOpen: boolean;
}

/** On a configuration: its webhooks are not called, or not those of the value (`a.example.com,b.example.com`). */
export const SUSPENDED = "webhooks.svc.io/suspended";

interface Known {
  readonly resourceVersion: string | undefined;
  readonly hooks: readonly Hook[];
}

/** Selectors and expressions are read once for each state of a configuration. */
export class Hooks {
  readonly #kind: ConfigurationKind;
  readonly #log: Logger;
  /** By names, those that are there. */
  #known: ReadonlyMap<string, Known> = new Map();
  #last: readonly Configuration[] = [];
  #hooks: readonly Hook[] = [];

  constructor(kind: ConfigurationKind, log: Logger) {
    this.#kind = kind;
    this.#log = log;
  }

  of(configurations: readonly Configuration[]): readonly Hook[] {
    if (isSame(configurations, this.#last)) return this.#hooks;
    const before = this.#known;
    const sorted = configurations.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    this.#known = new Map(sorted.map((one) => [nameOf(one), this.#read(one, before.get(nameOf(one)))]));
    this.#hooks = [...this.#known.values()].flatMap(({ hooks }) => hooks);
    this.#last = configurations;
    return this.#hooks;
  }

  #read(configuration: Configuration, before: Known | undefined): Known {
    const { resourceVersion } = configuration.metadata ?? {};
    if (before !== undefined && before.resourceVersion === resourceVersion) return before;
    const all = hooksOf(this.#kind, configuration);
    const hooks = all.filter(({ webhook }) => !isSuspended(configuration, webhook.name));
    if (hooks.length < all.length) {
      this.#log.warn("Webhooks are suspended: requests go past them", {
        configuration: nameOf(configuration),
        annotation: SUSPENDED,
        webhooks: all.length - hooks.length,
      });
    }
    return { resourceVersion, hooks };
  }
}

function isSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((one, i) => one === b[i]);
}

function hooksOf(kind: ConfigurationKind, configuration: Configuration): readonly Hook[] {
  return (configuration.webhooks ?? []).map((webhook, place) => {
    const { matchConditions: conditions = [], failurePolicy } = webhook;
    const failsOpen = failurePolicy === "Ignore";
    return {
      kind,
      webhook,
      configuration,
      id: `${nameOf(configuration)}/${webhook.name}/${place}`,
      namespaces: requirementsOf(webhook.namespaceSelector ?? {}),
      objects: requirementsOf(webhook.objectSelector ?? {}),
      conditions: conditions.length === 0 ? undefined : matchConditions(conditions, failsOpen),
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
