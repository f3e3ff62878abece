/** Converts the flags of `svc scheduler` and its configuration file to its options. */
import { readFileSync } from "node:fs";
import { type CborUse, cborUseOf } from "../client/api-client.ts";
import type { ConnectionOptions } from "../component/connection.ts";
import { validateLeaderElection } from "../component/flags.ts";
import { type LeaseOptions, leaseOptions } from "../component/lease-options.ts";
import type { ParsedFlags } from "../flags/flag.ts";
import type { FeatureGates } from "../flags/gates.ts";
import { isChanged } from "../flags/parse.ts";
import { parseDuration } from "../schema/value/time.ts";
import { parseYaml } from "../schema/yaml/yaml.ts";
import { defaultConfiguration, type SchedulerConfiguration } from "./config/configuration.ts";
import { type SchedulerFeatures, schedulerFeatures } from "./config/features.ts";
import { type LoadedConfiguration, parseConfiguration } from "./config/load-configuration.ts";
import { schedulerFlags } from "./flags.ts";

type Flags = ParsedFlags<typeof schedulerFlags>;

export interface SchedulerOptions {
  readonly connection: Omit<ConnectionOptions, "userAgent">;
  readonly contentType: Flags["kube-api-content-type"];
  /** Whether informers get their first objects with their watch. */
  readonly streamsLists: boolean;
  readonly cbor: CborUse | undefined;
  /** Undefined: it works without a lease. */
  readonly election: LeaseOptions | undefined;
  readonly config: SchedulerConfiguration;
  readonly features: SchedulerFeatures;
}

/** Throws with a message for the operator. */
export function schedulerOptions(flags: Flags, gates: FeatureGates): SchedulerOptions {
  const features = schedulerFeatures(gates);
  const loaded = flags.config === "" ? undefined : loadFile(flags.config, features);
  const effective = loaded === undefined ? flags : withFileSettings(flags, loaded);
  const [problem] = validateLeaderElection(effective);
  if (problem !== undefined) throw new Error(problem);
  return {
    connection: {
      kubeconfig: effective.kubeconfig,
      server: effective.master,
      qps: effective["kube-api-qps"],
      burst: effective["kube-api-burst"],
    },
    contentType: effective["kube-api-content-type"],
    streamsLists: gates.has("WatchListClient"),
    cbor: cborUseOf(gates.has("ClientsAllowCBOR"), gates.has("ClientsPreferCBOR")),
    election: leaseOptions(effective),
    config: {
      ...(loaded?.scheduler ?? defaultConfiguration),
      unschedulableMaxMs: effective["pod-max-in-unschedulable-pods-duration"],
    },
    features,
  };
}

function loadFile(path: string, { storageCapacityScoring }: SchedulerFeatures): LoadedConfiguration {
  try {
    const documents = parseYaml(readFileSync(path, "utf8"));
    if (documents.length !== 1) throw new Error(`expected one document, found ${documents.length}`);
    return parseConfiguration(documents[0]?.value, storageCapacityScoring);
  } catch (cause) {
    throw new Error(`Cannot read --config ${path}: ${(cause as Error).message}`, { cause });
  }
}

/** The settings of the file, except where a flag is given. */
function withFileSettings(flags: Flags, { connection, leaderElection }: LoadedConfiguration): Flags {
  const pick = <N extends keyof Flags>(name: N, fromFile: Flags[N] | undefined): Flags[N] =>
    fromFile === undefined || isChanged(schedulerFlags[name], flags[name]) ? flags[name] : fromFile;
  const { leaderElect, leaseDuration, renewDeadline, retryPeriod, resourceName, resourceNamespace } = leaderElection;
  return {
    ...flags,
    kubeconfig: pick("kubeconfig", connection.kubeconfig),
    "kube-api-qps": pick("kube-api-qps", connection.qps || undefined),
    "kube-api-burst": pick("kube-api-burst", connection.burst || undefined),
    "leader-elect": pick("leader-elect", leaderElect),
    "leader-elect-lease-duration": pick("leader-elect-lease-duration", milliseconds(leaseDuration)),
    "leader-elect-renew-deadline": pick("leader-elect-renew-deadline", milliseconds(renewDeadline)),
    "leader-elect-retry-period": pick("leader-elect-retry-period", milliseconds(retryPeriod)),
    "leader-elect-resource-name": pick("leader-elect-resource-name", resourceName || undefined),
    "leader-elect-resource-namespace": pick("leader-elect-resource-namespace", resourceNamespace || undefined),
  };
}

/** Zero means the default. */
function milliseconds(text: string | undefined): number | undefined {
  const nanos = text === undefined ? undefined : parseDuration(text);
  return nanos ? Number(nanos / 1_000_000n) : undefined;
}
