/** What plugins are created with, and how the table of plugins describes each. */
import type { Scheme } from "../../api/scheme.ts";
import type { KeyPair } from "../../auth/pki/key-pair.ts";
import type { Authorizer } from "../../auth/user.ts";
import type { FindWebhookConnector } from "../../client/webhook/webhook-client.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { AdmissionPlugin, ObjectReader, ObjectWriter } from "./plugin.ts";

export interface PluginDeps {
  readonly reader: ObjectReader;
  readonly writer: ObjectWriter;
  readonly authorizer: Authorizer;
  /** All kinds that are served, custom resources included. */
  readonly scheme: Scheme;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly metrics: MetricRegistry;
  readonly isFeatureEnabled: (gate: string) => boolean;
  /** How long pods tolerate the not-ready and unreachable taints by default. */
  readonly tolerationSeconds: { readonly notReady: number; readonly unreachable: number };
  /**
   * Whether services are resolved to one of their endpoints instead of the cluster IP (`--enable-aggregator-routing`).
   */
  readonly resolveEndpoints: boolean;
  /**
   * The client certificate for requests to other servers; credentials of the plugin's configuration take precedence.
   */
  readonly clientCertificate: () => KeyPair | undefined;
  /** How to connect to a webhook; undefined: all directly. */
  readonly connectorFor?: FindWebhookConnector | undefined;
  /** The plugin's part of the admission configuration file. */
  readonly configuration: PluginConfiguration | undefined;
  /** Aborts when the server stops; a plugin ends its background work then. */
  readonly stopping: AbortSignal;
}

/** The configuration of one plugin, as read from its file. */
export interface PluginConfiguration {
  /** As JSON, with `apiVersion` and `kind` if it has them. */
  readonly value: Readonly<Record<string, unknown>>;
  /** The source location of a member: `limits[0].qps` → `FILE:LINE`. */
  locationOf(path: string): string;
  /** Paths of members that are set twice. */
  readonly duplicates: readonly string[];
}

/** Throws an `Error` in one sentence, for the operator, if the configuration is invalid. */
export type PluginFactory = (deps: PluginDeps) => AdmissionPlugin | Promise<AdmissionPlugin>;

export interface PluginRow {
  readonly name: string;
  readonly enabledByDefault: boolean;
  /** While the feature gate is off, the plugin is not created and not reported as missing. */
  readonly featureGate?: string;
  /** Absent if this build does not have the plugin. */
  readonly create?: PluginFactory;
}
