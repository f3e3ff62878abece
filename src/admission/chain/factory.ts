/** What plugins are made of, and what is known of each before it is made. */
import type { Scheme } from "../../api/scheme.ts";
import type { KeyPair } from "../../auth/pki/key-pair.ts";
import type { Authorizer } from "../../auth/user.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { AdmissionPlugin, Effects, Lookup } from "./plugin.ts";

export interface PluginDeps {
  readonly lookup: Lookup;
  readonly effects: Effects;
  readonly authorizer: Authorizer;
  /** The kinds that the server knows, custom ones among them. */
  readonly scheme: Scheme;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly metrics: MetricRegistry;
  /** Whether a feature gate is on. */
  readonly isOn: (gate: string) => boolean;
  /** How long pods stay on a node that is in trouble, unless they say themselves. */
  readonly tolerationSeconds: { readonly notReady: number; readonly unreachable: number };
  /** Whether services are reached at one of their endpoints rather than at the cluster's address. */
  readonly serviceEndpoints: boolean;
  /** How the server proves who it is to those whom a plugin asks; what the operator's file says goes first. */
  readonly identity: () => KeyPair | undefined;
  /** What the operator's file says of this plugin; undefined when it says nothing. */
  readonly configuration: PluginConfiguration | undefined;
  /** Aborts when the server stops: whatever a plugin runs beside requests ends. */
  readonly stopping: AbortSignal;
}

/** The part of an operator's files that is a plugin's. */
export interface PluginConfiguration {
  /** As JSON has it, with `apiVersion` and `kind` where there are any. */
  readonly value: Readonly<Record<string, unknown>>;
  /** Where a member of the value stands: `limits[0].qps` → `FILE:LINE`. */
  at(path: string): string;
  /** Members that are named twice. */
  readonly duplicates: readonly string[];
}

/** Throws an `Error` with a sentence for the operator for a configuration that it cannot use. */
export type MakePlugin = (deps: PluginDeps) => AdmissionPlugin | Promise<AdmissionPlugin>;

export interface PluginRow {
  readonly name: string;
  readonly byDefault: boolean;
  /** While it is off the plugin does nothing, so nobody misses it. */
  readonly gate?: string;
  /** Absent where this build has no such plugin. */
  readonly make?: MakePlugin;
}
