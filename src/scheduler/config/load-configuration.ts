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
  type SchedulerConfiguration,
} from "./configuration.ts";
import { kubeSchedulerConfiguration, pluginArgs } from "./schema.ts";
import {
  type CheckedProfile,
  type CheckedSettings,
  type PluginConfigEntry,
  validateConfiguration,
} from "./validate-configuration.ts";

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
  checkKind(value);
  const problems: string[] = [];
  const raw = decodeValue(kubeSchedulerConfiguration, value, problems);
  const profiles = (raw.profiles?.length ? raw.profiles : [{}]).map((profile, index, all) =>
    readProfile(profile, index, all.length, problems),
  );
  if (problems.length > 0) throw strictError(problems);
  const scheduler: SchedulerConfiguration = {
    profiles: profiles.map(({ entries, ...profile }) => ({
      ...profile,
      // The schema of each plugin describes its arguments.
      pluginConfig: Object.fromEntries(entries) as Partial<PluginArgs>,
    })),
    extenders: (raw.extenders ?? []).map(readExtender),
    percentageOfNodesToScore: raw.percentageOfNodesToScore ?? 0,
    podInitialBackoffSeconds: raw.podInitialBackoffSeconds ?? 1,
    podMaxBackoffSeconds: raw.podMaxBackoffSeconds ?? 10,
    unschedulableMaxMs: defaultConfiguration.unschedulableMaxMs,
  };
  validateConfiguration(scheduler, profiles, {
    apiVersion: raw.apiVersion ?? "",
    parallelism: raw.parallelism ?? 1,
    burst: raw.clientConnection?.burst ?? 0,
    election: electionOf(raw.leaderElection),
    scoresCapacity,
  });
  return { scheduler, leaderElection: raw.leaderElection ?? {}, connection: raw.clientConnection ?? {} };
}

/** An empty or zero member has its default. */
function electionOf(given: Raw["leaderElection"] = {}): CheckedSettings["election"] {
  if (given.leaderElect === false) return undefined;
  const time = (text: string | undefined, seconds: bigint): bigint =>
    parseDuration(text ?? "0s") || seconds * 1_000_000_000n;
  return {
    resourceLock: given.resourceLock || "leases",
    leaseDuration: time(given.leaseDuration, 15n),
    renewDeadline: time(given.renewDeadline, 10n),
    retryPeriod: time(given.retryPeriod, 2n),
  };
}

function checkKind(value: unknown): void {
  const { apiVersion, kind } = (value ?? {}) as Partial<Record<string, unknown>>;
  if (kind === undefined || kind === "") throw new Error(`Object 'Kind' is missing in '${JSON.stringify(value)}'`);
  if (apiVersion === undefined || apiVersion === "") {
    throw new Error(`Object 'apiVersion' is missing in '${JSON.stringify(value)}'`);
  }
  if (!API_VERSIONS.includes(String(apiVersion)) || (kind !== KIND && !isArgsKind(kind))) {
    throw new Error(notRegistered(kind, apiVersion));
  }
  if (kind !== KIND) throw new Error(`couldn't decode as ${KIND}, got ${String(apiVersion)}, Kind=${String(kind)}: `);
}

function isArgsKind(kind: unknown): boolean {
  return Object.keys(pluginArgs).some((name) => kind === `${name}Args`);
}

function notRegistered(kind: unknown, version: unknown): string {
  const scheme = `in scheme "pkg/scheduler/apis/config/scheme/scheme.go:29"`;
  return `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(version)} ${scheme}`;
}

/** Adds unknown members to `problems`, which are an error after all others. */
function decodeValue<S extends ObjectSchema>(schema: S, value: unknown, problems: string[]): Infer<S> {
  const decoded = decode(schema, value);
  const [first] = decoded.errors;
  if (first !== undefined) throw new Error(first.message);
  problems.push(...decoded.unknown.map((name) => `unknown field ${JSON.stringify(name)}`));
  return decoded.value;
}

function strictError(problems: readonly string[]): Error {
  return new Error(`strict decoding error: ${problems.join(", ")}`);
}

/** A single profile may omit its name. */
function readProfile(profile: RawProfile, index: number, count: number, problems: string[]): CheckedProfile {
  const { schedulerName, percentageOfNodesToScore, plugins, pluginConfig = [] } = profile;
  const entries = pluginConfig.map(({ name = "", args }, position): PluginConfigEntry => {
    const path = `decoding .profiles[${index}].pluginConfig[${position}]`;
    const unknown: string[] = [];
    try {
      return [name, readArgs(name, args ?? {}, unknown)];
    } catch (cause) {
      throw new Error(`${path}: ${(cause as Error).message}`, { cause });
    } finally {
      if (unknown.length > 0) {
        const { message } = strictError([`decoding args for plugin ${name}: ${strictError(unknown).message}`]);
        problems.push(`${path}: ${message}`);
      }
    }
  });
  return {
    schedulerName: schedulerName ?? (count === 1 ? DEFAULT_SCHEDULER_NAME : ""),
    percentageOfNodesToScore,
    plugins: plugins as PluginsConfiguration | undefined,
    entries,
  };
}

/** Arguments may name their kind. Those of other projects' plugins are kept as they are. */
function readArgs(name: string, args: unknown, problems: string[]): object {
  const schema = Object.hasOwn(pluginArgs, name) ? pluginArgs[name] : undefined;
  if (schema === undefined) return {};
  const context = `decoding args for plugin ${name}`;
  if (typeof args !== "object" || args === null || Array.isArray(args)) {
    throw new Error(`${context}: couldn't get version/kind; json parse error: ${unmarshalError(args)}`);
  }
  const expected = `${name}Args`;
  const { apiVersion = API_VERSIONS[0], kind = expected } = args as Partial<Record<string, unknown>>;
  if (!API_VERSIONS.includes(String(apiVersion)) || !isArgsKind(kind)) {
    throw new Error(`${context}: ${notRegistered(kind, apiVersion)}`);
  }
  if (kind !== expected) {
    const [group] = String(apiVersion).split("/");
    throw new Error(`args for plugin ${name} were not of type ${expected}.${group}, got ${String(kind)}.${group}`);
  }
  try {
    return decodeValue(schema, args, problems);
  } catch (cause) {
    throw new Error(`${context}: ${(cause as Error).message}`, { cause });
  }
}

function unmarshalError(value: unknown): string {
  const type = Array.isArray(value) ? "array" : typeof value === "boolean" ? "bool" : typeof value;
  const tags = ["APIVersion", "Kind"].map(
    (name) => `${name} string "json:\\"${name === "Kind" ? "kind" : "apiVersion"},omitempty\\""`,
  );
  return `json: cannot unmarshal ${type} into Go value of type struct { ${tags.join("; ")} }`;
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
