/** Kubernetes' checks of the arguments of plugins. */
import { qualifiedName, validateName } from "../../api/meta/validation/names.ts";
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  unquoted,
  validateEach,
} from "../../schema/validation/field-error.ts";
import { child, index } from "../../schema/value/field-path.ts";
import { checkPreferredTerms, checkTerm } from "../plugins/nodes/check-selector.ts";
import type { PluginArgs } from "../plugins/registry.ts";
import type { ShapePoint } from "../plugins/resources/scoring-strategy.ts";

type Errors = readonly FieldError[];

/** The checks of a whole configuration; those of NodeResourcesFit take place when the plugin is created. */
export const argsChecks: {
  readonly [name in keyof PluginArgs]?: (args: PluginArgs[name], path: string, scoresCapacity: boolean) => Errors;
} = {
  DefaultPreemption: checkPreemption,
  InterPodAffinity: ({ hardPodAffinityWeight = 1 }, path) =>
    checkRange(child(path, "hardPodAffinityWeight"), hardPodAffinityWeight, 0, 100),
  NodeAffinity: checkAddedAffinity,
  NodeResourcesBalancedAllocation: checkBalancedResources,
  PodTopologySpread: checkSpread,
  VolumeBinding: checkVolumeBinding,
};

function checkRange(path: string, value: number, least: number, most: number): Errors {
  return value >= least && value <= most ? [] : [invalidField(path, value, `not in valid range [${least}, ${most}]`)];
}

function checkPreemption(args: PluginArgs["DefaultPreemption"], path: string): Errors {
  const { minCandidateNodesPercentage: share = 10, minCandidateNodesAbsolute: absolute = 100 } = args;
  const [sharePath, absolutePath] = [
    child(path, "minCandidateNodesPercentage"),
    child(path, "minCandidateNodesAbsolute"),
  ];
  return [
    ...checkRange(sharePath, share, 0, 100),
    ...(absolute >= 0 ? [] : [invalidField(absolutePath, absolute, "not in valid range [0, inf)")]),
    ...(share === 0 && absolute === 0
      ? [
          invalidField(sharePath, share, "cannot be zero at the same time as minCandidateNodesAbsolute"),
          invalidField(absolutePath, absolute, "cannot be zero at the same time as minCandidateNodesPercentage"),
        ]
      : []),
  ];
}

function checkBalancedResources(
  { resources = [] }: PluginArgs["NodeResourcesBalancedAllocation"],
  path: string,
): Errors {
  const seen = new Set<string>();
  return validateEach(resources, ({ name, weight = 0 }, i) => {
    const at = index(child(path, "resources"), i);
    const isRepeated = seen.has(name);
    seen.add(name);
    return [
      ...(isRepeated ? [duplicateField(child(at, "name"), name)] : []),
      ...(weight === 0 || weight === 1 ? [] : [invalidField(child(at, "weight"), weight, "must be 1")]),
    ];
  });
}

const ACTIONS = ["DoNotSchedule", "ScheduleAnyway"];

function checkSpread(
  { defaultingType, defaultConstraints = [] }: PluginArgs["PodTopologySpread"],
  path: string,
): Errors {
  const seen = new Set<string>();
  return [
    ...checkDefaultingType(defaultingType || "System", defaultConstraints.length, child(path, "defaultingType")),
    ...validateEach(
      defaultConstraints,
      ({ maxSkew = 0, topologyKey = "", whenUnsatisfiable = "", labelSelector }, i) => {
        const at = index(child(path, "defaultConstraints"), i);
        const key = `{${topologyKey}, ${whenUnsatisfiable}}`;
        const isRepeated = seen.has(key);
        seen.add(key);
        return [
          ...(maxSkew > 0 ? [] : [invalidField(child(at, "maxSkew"), maxSkew, "not in valid range (0, inf)")]),
          ...checkRequired(child(at, "topologyKey"), topologyKey, (text) =>
            validateName(child(at, "topologyKey"), text, qualifiedName),
          ),
          ...checkRequired(child(at, "whenUnsatisfiable"), whenUnsatisfiable, (text) =>
            ACTIONS.includes(text) ? [] : [notSupported(child(at, "whenUnsatisfiable"), text, ACTIONS)],
          ),
          ...(labelSelector === undefined
            ? []
            : [
                forbiddenField(
                  child(at, "labelSelector"),
                  "constraint must not define a selector, as they deduced for each pod",
                ),
              ]),
          ...(isRepeated ? [duplicateField(at, key)] : []),
        ];
      },
    ),
  ];
}

function checkDefaultingType(type: string, constraints: number, path: string): Errors {
  const types = ["System", "List"];
  if (!types.includes(type)) return [notSupported(path, type, types)];
  if (type === "List" || constraints === 0) return [];
  return [invalidField(path, type, "when .defaultConstraints are not empty")];
}

function checkRequired(path: string, text: string, check: (text: string) => Errors): Errors {
  return text === "" ? [requiredField(path, "can not be empty")] : check(text);
}

function checkAddedAffinity({ addedAffinity }: PluginArgs["NodeAffinity"], path: string): Errors {
  const at = child(path, "addedAffinity");
  const required = addedAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const preferred = addedAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const requiredPath = child(child(at, "requiredDuringSchedulingIgnoredDuringExecution"), "nodeSelectorTerms");
  const preferredPath = child(at, "preferredDuringSchedulingIgnoredDuringExecution");
  return [
    ...validateEach(required, (term, i) => checkTerm(term, index(requiredPath, i))),
    ...checkPreferredTerms(preferred, preferredPath),
  ];
}

function checkVolumeBinding(
  { bindTimeoutSeconds = 600, shape }: PluginArgs["VolumeBinding"],
  path: string,
  scoresCapacity: boolean,
): Errors {
  const problem = "invalid BindTimeoutSeconds, should not be a negative value";
  const timeout =
    bindTimeoutSeconds >= 0 ? [] : [invalidField(child(path, "bindTimeoutSeconds"), bindTimeoutSeconds, problem)];
  const at = child(path, "shape");
  if (scoresCapacity) return [...timeout, ...(shape === undefined || shape.length === 0 ? [] : checkShape(shape, at))];
  if (shape === undefined) return timeout;
  const points = shape.map(
    ({ utilization = 0, score = 0 }) => `config.UtilizationShapePoint{Utilization:${utilization}, Score:${score}}`,
  );
  const badValue = unquoted(`[]config.UtilizationShapePoint{${points.join(", ")}}`);
  return [...timeout, invalidField(at, badValue, UNEXPECTED_SHAPE)];
}

const UNEXPECTED_SHAPE = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring";

const STRATEGIES = ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];

export function checkResourcesFit({
  ignoredResources = [],
  ignoredResourceGroups = [],
  scoringStrategy,
}: PluginArgs["NodeResourcesFit"]): Errors {
  const { type = "", resources = [], requestedToCapacityRatio } = scoringStrategy ?? { type: "LeastAllocated" };
  const at = "scoringStrategy";
  return [
    ...validateEach(ignoredResources, (name, i) => validateName(index("ignoredResources", i), name, qualifiedName)),
    ...validateEach(ignoredResourceGroups, (group, i) => {
      const path = index("ignoredResourceGroups", i);
      const slash = group.includes("/") ? [invalidField(path, group, "resource group name can't contain '/'")] : [];
      return [...slash, ...validateName(path, group, qualifiedName)];
    }),
    ...(STRATEGIES.includes(type) ? [] : [notSupported(child(at, "type"), type, STRATEGIES)]),
    ...validateEach(resources, ({ name, weight = 0 }, i) =>
      weight >= 0 && weight <= 100
        ? []
        : [
            invalidField(
              child(index(child(at, "resources"), i), "weight"),
              weight,
              `resource weight of ${name} not in valid range (0, 100]`,
            ),
          ],
    ),
    ...(requestedToCapacityRatio === undefined && type !== "RequestedToCapacityRatio"
      ? []
      : checkShape(requestedToCapacityRatio?.shape ?? [], child(at, "shape"))),
  ];
}

function checkShape(shape: readonly ShapePoint[], path: string): Errors {
  if (shape.length === 0) return [requiredField(path, "at least one point must be specified")];
  const unsorted = shape.findIndex(
    ({ utilization = 0 }, i) => i > 0 && (shape[i - 1]?.utilization ?? 0) >= utilization,
  );
  return [
    ...(unsorted < 0
      ? []
      : [
          invalidField(
            child(index(path, unsorted), "utilization"),
            shape[unsorted]?.utilization ?? 0,
            "utilization values must be sorted in increasing order",
          ),
        ]),
    ...validateEach(shape, ({ utilization = 0, score = 0 }, i) => [
      ...checkRange(child(index(path, i), "utilization"), utilization, 0, 100),
      ...checkRange(child(index(path, i), "score"), score, 0, 10),
    ]),
  ];
}
