/** Kubernetes' checks of a scheduler's configuration. */
import { isExtendedResource } from "../../api/core/resources/names.ts";
import { qualifiedName } from "../../api/meta/validation/names.ts";
import {
  type BadValue,
  duplicateField,
  type FieldError,
  invalidField,
  invalidUnquoted,
  renderFieldErrors,
  requiredField,
  unquoted,
  validateEach,
} from "../../schema/validation/field-error.ts";
import { child, index } from "../../schema/value/field-path.ts";
import type { PluginArgs } from "../plugins/registry.ts";
import type {
  ExtenderConfiguration,
  PluginSetConfiguration,
  PluginsConfiguration,
  ProfileConfiguration,
  SchedulerConfiguration,
} from "./configuration.ts";
import { REMOVED_PLUGINS } from "./default-plugins.ts";
import { planProfile } from "./profile.ts";
import { argsChecks, checkResourcesFit } from "./validate-plugin-args.ts";

type Errors = readonly FieldError[];

/** Settings beside those of `SchedulerConfiguration`. Times are in nanoseconds. */
export interface CheckedSettings {
  readonly apiVersion: string;
  readonly parallelism: number;
  /** Of the connection to the API server. */
  readonly burst: number;
  /** Undefined without leader election. */
  readonly election:
    | {
        readonly resourceLock: string;
        readonly leaseDuration: bigint;
        readonly renewDeadline: bigint;
        readonly retryPeriod: bigint;
      }
    | undefined;
  /** The gate StorageCapacityScoring. */
  readonly scoresCapacity: boolean;
}

/** `pluginConfig` of a profile as it was given: plugins may be unknown, or repeated. */
export type PluginConfigEntry = readonly [name: string, args: object];

export interface CheckedProfile extends Omit<ProfileConfiguration, "pluginConfig"> {
  readonly entries: readonly PluginConfigEntry[];
}

/** Throws an error that lists all problems. */
export function validateConfiguration(
  config: SchedulerConfiguration,
  profiles: readonly CheckedProfile[],
  settings: CheckedSettings,
): void {
  const { percentageOfNodesToScore, podInitialBackoffSeconds: initial, podMaxBackoffSeconds: max, extenders } = config;
  const { burst, parallelism } = settings;
  const errors: Errors = [
    ...(burst >= 0 ? [] : [invalidField("clientConnection.burst", burst, "must be non-negative")]),
    ...checkElection(settings.election),
    ...(parallelism > 0
      ? []
      : [invalidField("parallelism", parallelism, "should be an integer value greater than zero")]),
    ...validateEach(profiles, (profile, i) => checkProfile(profile, i, profiles, settings)),
    ...checkQueueSort(profiles),
    ...checkPercentage("percentageOfNodesToScore", percentageOfNodesToScore),
    ...(initial > 0 ? [] : [invalidField("podInitialBackoffSeconds", initial, "must be greater than 0")]),
    ...(max >= initial
      ? []
      : [invalidField("podMaxBackoffSeconds", max, "must be greater than or equal to PodInitialBackoffSeconds")]),
    ...checkExtenders(extenders),
  ];
  if (errors.length > 0) throw new Error(renderFieldErrors(errors));
  for (const profile of profiles) checkPlugins(profile);
}

function checkElection(election: CheckedSettings["election"]): Errors {
  if (election === undefined) return [];
  const path = (name: string): string => child("leaderElection", name);
  const { resourceLock, leaseDuration, renewDeadline, retryPeriod } = election;
  const format = (time: bigint): BadValue => unquoted(`v1.Duration{Duration:${time}}`);
  const times = Object.entries({ leaseDuration, renewDeadline, retryPeriod });
  return [
    ...times
      .filter(([, time]) => time <= 0n)
      .map(([name, time]) => invalidField(path(name), format(time), "must be greater than zero")),
    ...(leaseDuration > renewDeadline
      ? []
      : [
          invalidField(
            path("leaseDuration"),
            format(renewDeadline),
            "LeaseDuration must be greater than RenewDeadline",
          ),
        ]),
    ...(resourceLock === "leases"
      ? []
      : [invalidField(path("resourceLock"), resourceLock, 'resourceLock value must be "leases"')]),
  ];
}

function checkProfile(
  { schedulerName, percentageOfNodesToScore = 0, plugins = {}, entries }: CheckedProfile,
  position: number,
  all: readonly CheckedProfile[],
  { apiVersion, scoresCapacity }: CheckedSettings,
): Errors {
  const path = index("profiles", position);
  const removed = (at: string, name: string): Errors => {
    const detail = `was invalid in version "v1" (KubeSchedulerConfiguration is version ${JSON.stringify(apiVersion)})`;
    return REMOVED_PLUGINS.includes(name) ? [invalidField(at, name, detail)] : [];
  };
  const { multiPoint: _, ...points } = plugins;
  const isRepeated = all.findIndex((other) => other.schedulerName === schedulerName) < position;
  const seen = new Set<string>();
  return [
    ...(schedulerName === "" ? [requiredField(child(path, "schedulerName"))] : []),
    ...checkPercentage(child(path, "percentageOfNodesToScore"), percentageOfNodesToScore),
    ...Object.entries<PluginSetConfiguration | undefined>(points).flatMap(([point, set]) =>
      validateEach(set?.enabled ?? [], ({ name }, i) =>
        removed(index(child(child(child(path, "plugins"), point), "enabled"), i), name),
      ),
    ),
    ...validateEach(entries, ([name, args], i) => {
      const at = index(child(path, "pluginConfig"), i);
      const duplicates = seen.has(name) ? [duplicateField(at, name)] : [];
      seen.add(name);
      return [...duplicates, ...removed(at, name), ...checkArgs(name, args, child(at, "args"), scoresCapacity)];
    }),
    ...(isRepeated ? [duplicateField(child(path, "schedulerName"), schedulerName)] : []),
  ];
}

function checkArgs(name: string, args: object, path: string, scoresCapacity: boolean): Errors {
  if (!Object.hasOwn(argsChecks, name)) return [];
  // The schema of each plugin describes its arguments.
  const check = argsChecks[name as keyof PluginArgs] as (args: object, path: string, scores: boolean) => Errors;
  return check(args, path, scoresCapacity);
}

/** All profiles share one queue. */
function checkQueueSort(profiles: readonly CheckedProfile[]): Errors {
  const sets = profiles.map(({ plugins }) => formatPluginSet(plugins?.queueSort));
  const count = profiles[0]?.plugins?.queueSort?.enabled?.length ?? 0;
  return [
    ...(count > 1
      ? [invalidField("profiles[0].plugins.queueSort.Enabled", count, "only one queue sort plugin can be enabled")]
      : []),
    ...sets.flatMap((set, i) =>
      set === sets[0]
        ? []
        : [
            invalidField(
              `profiles[${i}].plugins.queueSort`,
              unquoted(set),
              "queueSort must be the same for all profiles",
            ),
          ],
    ),
  ];
}

/** As Go's `%#v`. */
function formatPluginSet({ enabled = [], disabled = [] }: PluginSetConfiguration = {}): string {
  const format = (plugins: NonNullable<PluginSetConfiguration["enabled"]>): string => {
    const each = plugins.map(({ name, weight = 0 }) => `config.Plugin{Name:${JSON.stringify(name)}, Weight:${weight}}`);
    return each.length === 0 ? "[]config.Plugin(nil)" : `[]config.Plugin{${each.join(", ")}}`;
  };
  return `config.PluginSet{Enabled:${format(enabled)}, Disabled:${format(disabled.map(({ name }) => ({ name })))}}`;
}

/** At most one extender binds. */
function checkExtenders(extenders: readonly ExtenderConfiguration[]): Errors {
  const binders = extenders.filter(({ bindVerb }) => bindVerb).length;
  const managed = new Set<string>();
  return [
    ...validateEach(extenders, ({ prioritizeVerb, weight = 0, managedResources = [] }, i) => {
      const path = index("extenders", i);
      return [
        ...(prioritizeVerb && weight <= 0
          ? [invalidField(child(path, "weight"), weight, "must have a positive weight applied to it")]
          : []),
        ...validateEach(managedResources, ({ name }, j) => {
          const at = child(index(child(path, "managedResources"), j), "name");
          const isRepeated = managed.has(name);
          managed.add(name);
          return [
            ...checkResourceName(at, name),
            ...(isRepeated ? [invalidField(at, name, "duplicate extender managed resource name")] : []),
          ];
        }),
      ];
    }),
    ...(binders > 1
      ? [
          invalidField(
            "extenders",
            `found ${binders} extenders implementing bind`,
            "only one extender can implement bind",
          ),
        ]
      : []),
  ];
}

function checkResourceName(path: string, name: string): Errors {
  const problems = qualifiedName(name);
  if (problems.length > 0) return problems.map((problem) => invalidUnquoted(path, name, problem));
  return isExtendedResource(name) ? [] : [invalidField(path, name, "is an invalid extended resource name")];
}

function checkPercentage(path: string, value: number): Errors {
  return value >= 0 && value <= 100 ? [] : [invalidField(path, value, "not in valid range [0-100]")];
}

/** What Kubernetes checks when it creates the plugins. */
function checkPlugins({ schedulerName, plugins = {}, entries }: CheckedProfile): void {
  try {
    const args = entries.findLast(([name]) => name === "NodeResourcesFit")?.[1] ?? {};
    const problems = checkResourcesFit(args as PluginArgs["NodeResourcesFit"]);
    if (problems.length > 0) throw new Error(`initializing plugin "NodeResourcesFit": ${renderFieldErrors(problems)}`);
    planProfile(schedulerName, plugins as PluginsConfiguration);
  } catch (cause) {
    const message = (cause as Error).message;
    throw new Error(`initializing profiles: creating profile for scheduler name ${schedulerName}: ${message}`, {
      cause,
    });
  }
}
