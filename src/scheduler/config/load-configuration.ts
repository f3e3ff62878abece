/** Reads a `KubeSchedulerConfiguration`, with Kubernetes' defaults and checks. */
import { decode } from "../../schema/decode/decode.ts";
import type { Infer, ObjectSchema } from "../../schema/schema.ts";
import { parseDuration } from "../../schema/value/time.ts";
import type { PluginArgs } from "../plugins/registry.ts";
import {
  DEFAULT_SCHEDULER_NAME,
  defaultConfiguration,
  type ExtenderConfiguration,
  type PluginsConfiguration,
  type ProfileConfiguration,
  type SchedulerConfiguration,
} from "./configuration.ts";
import { kubeSchedulerConfiguration, pluginArgs } from "./schema.ts";
import { validateConfiguration } from "./validate-configuration.ts";

/** `kubescheduler.config.svc.io` is the project's alias of the group. */
const API_VERSIONS = ["kubescheduler.config.k8s.io/v1", "kubescheduler.config.svc.io/v1"];
const KIND = "KubeSchedulerConfiguration";
const DEFAULT_EXTENDER_TIMEOUT_MS = 5_000;

type Raw = Infer<typeof kubeSchedulerConfiguration>;
type RawProfile = NonNullable<Raw["profiles"]>[number];

export interface LoadedConfiguration {
  readonly scheduler: SchedulerConfiguration;
  readonly leaderElection: NonNullable<Raw["leaderElection"]>;
  /** `kubeconfig` is the path of a file. */
  readonly connection: NonNullable<Raw["clientConnection"]>;
}

/** Throws an error that lists all problems. `scoresCapacity`: the gate StorageCapacityScoring. */
export function parseConfiguration(value: unknown, scoresCapacity = false): LoadedConfiguration {
  const raw = decodeStrictly(kubeSchedulerConfiguration, value, "");
  const { apiVersion = "", kind = "" } = raw;
  if (!API_VERSIONS.includes(apiVersion) || kind !== KIND) {
    throw new Error(`no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`);
  }
  const profiles = (raw.profiles ?? [{}]).map((profile, index, all) => readProfile(profile, index, all.length));
  const scheduler: SchedulerConfiguration = {
    profiles,
    extenders: (raw.extenders ?? []).map(readExtender),
    percentageOfNodesToScore: raw.percentageOfNodesToScore ?? 0,
    podInitialBackoffSeconds: raw.podInitialBackoffSeconds ?? 1,
    podMaxBackoffSeconds: raw.podMaxBackoffSeconds ?? 10,
    unschedulableMaxMs: defaultConfiguration.unschedulableMaxMs,
  };
  const settings = { parallelism: raw.parallelism ?? 1, burst: raw.clientConnection?.burst ?? 0 };
  validateConfiguration(scheduler, settings, scoresCapacity);
  return { scheduler, leaderElection: raw.leaderElection ?? {}, connection: raw.clientConnection ?? {} };
}

function decodeStrictly<S extends ObjectSchema>(schema: S, value: unknown, path: string): Infer<S> {
  const decoded = decode(schema, value);
  const problems = [
    ...decoded.errors.map(({ message }) => message),
    ...decoded.unknown.map((name) => `unknown field ${JSON.stringify(name)}`),
  ];
  if (problems.length > 0) throw new Error(`strict decoding error${path && ` at ${path}`}: ${problems.join(", ")}`);
  return decoded.value;
}

/** A single profile may omit its name. */
function readProfile(profile: RawProfile, index: number, count: number): ProfileConfiguration {
  const { schedulerName, percentageOfNodesToScore, plugins } = profile;
  const entries = (profile.pluginConfig ?? []).map(({ name = "", args }, position) => {
    const path = `profiles[${index}].pluginConfig[${position}].args`;
    const schema = Object.hasOwn(pluginArgs, name) ? pluginArgs[name] : undefined;
    if (schema === undefined) throw new Error(`${path}: plugin ${JSON.stringify(name)} takes no arguments`);
    return [name, decodeStrictly(schema, args ?? {}, path)] as const;
  });
  return {
    schedulerName: schedulerName ?? (count === 1 ? DEFAULT_SCHEDULER_NAME : ""),
    percentageOfNodesToScore,
    plugins: plugins as PluginsConfiguration | undefined,
    // The schema of each plugin describes its arguments.
    pluginConfig: Object.fromEntries(entries) as Partial<PluginArgs>,
  };
}

function readExtender({ httpTimeout, ...extender }: NonNullable<Raw["extenders"]>[number]): ExtenderConfiguration {
  const timeout = httpTimeout === undefined ? undefined : parseDuration(httpTimeout);
  return {
    ...extender,
    urlPrefix: extender.urlPrefix ?? "",
    managedResources: extender.managedResources?.map(({ name = "", ...rest }) => ({ name, ...rest })),
    httpTimeoutMs: timeout ? Number(timeout / 1_000_000n) : DEFAULT_EXTENDER_TIMEOUT_MS,
  };
}
