/** Kubernetes' checks of a scheduler's configuration. */
import type { PluginArgs } from "../plugins/registry.ts";
import type { ShapePoint } from "../plugins/resources/scoring-strategy.ts";
import type { ExtenderConfiguration, ProfileConfiguration, SchedulerConfiguration } from "./configuration.ts";

/** Settings beside those of `SchedulerConfiguration`. */
export interface CheckedSettings {
  readonly parallelism: number;
  /** Of the connection to the API server. */
  readonly burst: number;
}

/** Throws an error that lists all problems. */
export function validateConfiguration(
  config: SchedulerConfiguration,
  { parallelism, burst }: CheckedSettings,
  scoresCapacity: boolean,
): void {
  const problems = [
    ...(burst >= 0 ? [] : [invalid("clientConnection.burst", burst, "must be non-negative")]),
    ...(parallelism > 0 ? [] : [invalid("parallelism", parallelism, "should be an integer value greater than zero")]),
    ...checkPercentage("percentageOfNodesToScore", config.percentageOfNodesToScore),
    ...(config.podInitialBackoffSeconds > 0
      ? []
      : [invalid("podInitialBackoffSeconds", config.podInitialBackoffSeconds, "must be greater than 0")]),
    ...(config.podMaxBackoffSeconds >= config.podInitialBackoffSeconds
      ? []
      : [
          invalid(
            "podMaxBackoffSeconds",
            config.podMaxBackoffSeconds,
            "must be greater than or equal to PodInitialBackoffSeconds",
          ),
        ]),
    ...(config.profiles.length === 0 ? ["profiles: Required value"] : []),
    ...config.profiles.flatMap((profile, index) => checkProfile(profile, index, config.profiles, scoresCapacity)),
    ...checkExtenders(config.extenders),
  ];
  if (problems.length === 1) throw new Error(problems[0]);
  if (problems.length > 1) throw new Error(`[${problems.join(", ")}]`);
}

function checkProfile(
  { schedulerName, percentageOfNodesToScore, pluginConfig = {} }: ProfileConfiguration,
  index: number,
  all: readonly ProfileConfiguration[],
  scoresCapacity: boolean,
): readonly string[] {
  const path = `profiles[${index}]`;
  const isDuplicate = all.findIndex((other) => other.schedulerName === schedulerName) < index;
  return [
    ...(schedulerName === "" ? [`${path}.schedulerName: Required value`] : []),
    ...(isDuplicate ? [`${path}.schedulerName: Duplicate value: ${JSON.stringify(schedulerName)}`] : []),
    ...checkPercentage(`${path}.percentageOfNodesToScore`, percentageOfNodesToScore ?? 0),
    ...checkArgs(`${path}.pluginConfig`, pluginConfig, scoresCapacity),
  ];
}

function checkArgs(path: string, args: Partial<PluginArgs>, scoresCapacity: boolean): readonly string[] {
  const hardWeight = args.InterPodAffinity?.hardPodAffinityWeight ?? 0;
  const { minCandidateNodesPercentage = 10, minCandidateNodesAbsolute = 100 } = args.DefaultPreemption ?? {};
  const { defaultingType, defaultConstraints = [] } = args.PodTopologySpread ?? {};
  const strategy = args.NodeResourcesFit?.scoringStrategy;
  const timeout = args.VolumeBinding?.bindTimeoutSeconds ?? 0;
  const problems: string[] = [];
  const check = (isValid: boolean, field: string, value: unknown, message: string): void => {
    if (!isValid) problems.push(invalid(`${path}.${field}`, value, message));
  };
  check(hardWeight >= 0 && hardWeight <= 100, "hardPodAffinityWeight", hardWeight, "not in valid range [0-100]");
  check(
    minCandidateNodesPercentage >= 0 && minCandidateNodesPercentage <= 100,
    "minCandidateNodesPercentage",
    minCandidateNodesPercentage,
    "not in valid range [0, 100]",
  );
  check(
    minCandidateNodesAbsolute >= 0,
    "minCandidateNodesAbsolute",
    minCandidateNodesAbsolute,
    "not in valid range [0, inf)",
  );
  check(
    defaultingType === "List" || defaultConstraints.length === 0,
    "defaultingType",
    defaultingType ?? "System",
    'when .defaultConstraints are not empty, .defaultingType must be "List"',
  );
  for (const constraint of defaultConstraints) {
    const hasSelector = constraint.labelSelector !== undefined;
    check(!hasSelector, "labelSelector", "", "constraint must not define a selector");
  }
  for (const { name, weight } of strategy?.resources ?? []) {
    check(
      weight === undefined || (weight >= 0 && weight <= 100),
      `weight of ${name}`,
      weight,
      "not in valid range (0, 100]",
    );
  }
  const checkShape = (shape: readonly ShapePoint[]): void => {
    for (const [index, { utilization = 0, score = 0 }] of shape.entries()) {
      check(utilization >= 0 && utilization <= 100, "utilization", utilization, "not in valid range [0-100]");
      check(score >= 0 && score <= 10, "score", score, "not in valid range [0-10]");
      const previous = shape[index - 1]?.utilization ?? -1;
      check(utilization > previous, "utilization", utilization, "values must be sorted in increasing order");
    }
  };
  const shape = strategy?.requestedToCapacityRatio?.shape ?? [];
  if (strategy?.type === "RequestedToCapacityRatio" && shape.length === 0) {
    problems.push(`${path}.shape: Required value: at least one point must be specified`);
  }
  checkShape(shape);
  const ofVolumes = args.VolumeBinding?.shape;
  if (scoresCapacity) checkShape(ofVolumes ?? []);
  else check(ofVolumes === undefined, "shape", ofVolumes, UNEXPECTED_SHAPE);
  check(timeout >= 0, "bindTimeoutSeconds", timeout, "invalid BindTimeoutSeconds, should not be a negative value");
  return problems;
}

const UNEXPECTED_SHAPE = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring";

/** At most one extender binds. */
function checkExtenders(extenders: readonly ExtenderConfiguration[]): readonly string[] {
  const binders = extenders.filter(({ bindVerb }) => bindVerb).length;
  return [
    ...(binders > 1
      ? [invalid("extenders", `found ${binders} extenders`, "only one extender can implement bind")]
      : []),
    ...extenders.flatMap(({ urlPrefix, prioritizeVerb, weight = 0 }, index) => [
      ...(prioritizeVerb && weight <= 0
        ? [invalid(`extenders[${index}].weight`, weight, "must have a positive weight applied to it")]
        : []),
      ...(URL.canParse(urlPrefix) ? [] : [invalid(`extenders[${index}].urlPrefix`, urlPrefix, "must be a URL")]),
    ]),
  ];
}

function checkPercentage(path: string, value: number): readonly string[] {
  return value >= 0 && value <= 100 ? [] : [invalid(path, value, "not in valid range [0-100]")];
}

function invalid(path: string, value: unknown, message: string): string {
  return `${path}: Invalid value: ${JSON.stringify(value)}: ${message}`;
}
