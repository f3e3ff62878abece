import t, { type Test } from "tap";
import { parseConfiguration } from "./load-configuration.ts";

const API_VERSION = "kubescheduler.config.k8s.io/v1";

type Case = readonly [members: object, message: string];

function check(t: Test, cases: readonly Case[]): void {
  for (const [members, message] of cases) {
    t.equal(problemOf({ apiVersion: API_VERSION, kind: "KubeSchedulerConfiguration", ...members }), message);
  }
}

function problemOf(value: unknown, scoresCapacity = false): string {
  try {
    parseConfiguration(value, scoresCapacity);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

const args = (name: string, value: unknown) => ({ profiles: [{ pluginConfig: [{ name, args: value }] }] });
const plugins = (points: object) => ({ profiles: [{ plugins: points }] });
const ARGS = "profiles[0].pluginConfig[0].args";
const PROFILE = "initializing profiles: creating profile for scheduler name default-scheduler: ";
const NAME_PART =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const SCHEME = 'in scheme "pkg/scheduler/apis/config/scheme/scheme.go:29"';

t.test("settings out of their range are errors with their path", async (t) => {
  check(t, [
    [{}, ""],
    [{ parallelism: -1 }, "parallelism: Invalid value: -1: should be an integer value greater than zero"],
    [{ clientConnection: { burst: -1 } }, "clientConnection.burst: Invalid value: -1: must be non-negative"],
    [{ percentageOfNodesToScore: 101 }, "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
    [{ podInitialBackoffSeconds: 0 }, "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"],
    [
      { podInitialBackoffSeconds: 20 },
      "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
    ],
    [
      { profiles: [{ percentageOfNodesToScore: -1, schedulerName: "" }], parallelism: 0 },
      "[parallelism: Invalid value: 0: should be an integer value greater than zero, profiles[0].schedulerName: Required value, profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]]",
    ],
    [{ profiles: [] }, ""],
    [{ profiles: [{ schedulerName: "a" }, {}] }, "profiles[1].schedulerName: Required value"],
    [{ profiles: [{ schedulerName: "a" }, { schedulerName: "a" }] }, 'profiles[1].schedulerName: Duplicate value: "a"'],
  ]);
});

t.test("leader election is checked unless it is off, with defaults for zero", async (t) => {
  const election = (members: object) => ({ leaderElection: members });
  check(t, [
    [election({ leaseDuration: "0s" }), ""],
    [election({ leaderElect: false, leaseDuration: "-1s", resourceLock: "endpoints" }), ""],
    [
      election({ leaseDuration: "5s" }),
      "leaderElection.leaseDuration: Invalid value: v1.Duration{Duration:10000000000}: LeaseDuration must be greater than RenewDeadline",
    ],
    [
      election({ retryPeriod: "-1s", resourceLock: "endpoints" }),
      '[leaderElection.retryPeriod: Invalid value: v1.Duration{Duration:-1000000000}: must be greater than zero, leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"]',
    ],
  ]);
});

t.test("a file of another kind, and members that are unknown or of another type", async (t) => {
  check(t, [
    [
      { apiVersion: "kubescheduler.config.k8s.io/v1beta3" },
      `no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta3" ${SCHEME}`,
    ],
    [{ kind: "Pod" }, `no kind "Pod" is registered for version "${API_VERSION}" ${SCHEME}`],
    [
      { kind: "NodeAffinityArgs" },
      `couldn't decode as KubeSchedulerConfiguration, got ${API_VERSION}, Kind=NodeAffinityArgs: `,
    ],
    [{ kind: undefined }, `Object 'Kind' is missing in '{"apiVersion":"${API_VERSION}"}'`],
    [{ apiVersion: undefined }, `Object 'apiVersion' is missing in '{"kind":"KubeSchedulerConfiguration"}'`],
    [{ b: 1, a: {} }, 'strict decoding error: unknown field "b", unknown field "a"'],
    [
      { parallelism: "x" },
      "json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.parallelism of type int32",
    ],
  ]);
});

t.test("arguments of plugins are decoded as their kind; those of other projects' plugins are accepted", async (t) => {
  const at = "decoding .profiles[0].pluginConfig[0]:";
  const context = `${at} decoding args for plugin InterPodAffinity:`;
  const named = (members: object) => args("InterPodAffinity", members);
  check(t, [
    [args("Coscheduling", { any: 1 }), ""],
    [args("NodeName", {}), ""],
    [args("InterPodAffinity", null), ""],
    [named({ apiVersion: API_VERSION, kind: "InterPodAffinityArgs" }), ""],
    [
      named({ kind: "NodeAffinityArgs" }),
      `${at} args for plugin InterPodAffinity were not of type InterPodAffinityArgs.kubescheduler.config.k8s.io, got NodeAffinityArgs.kubescheduler.config.k8s.io`,
    ],
    [named({ kind: "Pod" }), `${context} no kind "Pod" is registered for version "${API_VERSION}" ${SCHEME}`],
    [
      named({ hardPodAffinityWeight: "x" }),
      `${context} json: cannot unmarshal string into Go struct field InterPodAffinityArgs.hardPodAffinityWeight of type int32`,
    ],
    [
      args("InterPodAffinity", []),
      `${context} couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`,
    ],
    [
      { x: 1, ...named({ y: 2, z: 3 }) },
      `strict decoding error: unknown field "x", ${at} strict decoding error: decoding args for plugin InterPodAffinity: strict decoding error: unknown field "y", unknown field "z"`,
    ],
    [
      { profiles: [{ pluginConfig: ["A", "B", "A"].map((name) => ({ name })) }] },
      'profiles[0].pluginConfig[2]: Duplicate value: "A"',
    ],
  ]);
});

t.test("arguments of plugins have Kubernetes' ranges", async (t) => {
  check(t, [
    [
      args("InterPodAffinity", { hardPodAffinityWeight: 101 }),
      `${ARGS}.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]`,
    ],
    [
      args("DefaultPreemption", { minCandidateNodesPercentage: -1, minCandidateNodesAbsolute: -1 }),
      `[${ARGS}.minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100], ${ARGS}.minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)]`,
    ],
    [
      args("DefaultPreemption", { minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0 }),
      `[${ARGS}.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute, ${ARGS}.minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage]`,
    ],
    [args("DefaultPreemption", { minCandidateNodesPercentage: 0 }), ""],
    [
      args("NodeResourcesBalancedAllocation", { resources: [{ name: "cpu" }, { name: "cpu", weight: 2 }] }),
      `[${ARGS}.resources[1].name: Duplicate value: "cpu", ${ARGS}.resources[1].weight: Invalid value: 2: must be 1]`,
    ],
    [
      args("VolumeBinding", { bindTimeoutSeconds: -1, shape: [{ score: 1 }] }),
      `[${ARGS}.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value, ${ARGS}.shape: Invalid value: []config.UtilizationShapePoint{config.UtilizationShapePoint{Utilization:0, Score:1}}: unexpected field \`shape\`, remove it or turn on the feature gate StorageCapacityScoring]`,
    ],
  ]);
  const shape = [{ utilization: 5 }, { utilization: 5, score: 11 }];
  t.equal(
    problemOf(
      { apiVersion: API_VERSION, kind: "KubeSchedulerConfiguration", ...args("VolumeBinding", { shape }) },
      true,
    ),
    `[${ARGS}.shape[1].utilization: Invalid value: 5: utilization values must be sorted in increasing order, ${ARGS}.shape[1].score: Invalid value: 11: not in valid range [0, 10]]`,
  );
});

t.test("default spread constraints are checked as those of pods, and need the type List", async (t) => {
  const valid = { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" };
  const spread = (...defaultConstraints: object[]) =>
    args("PodTopologySpread", { defaultingType: "List", defaultConstraints });
  const first = `${ARGS}.defaultConstraints[0]`;
  check(t, [
    [spread(valid), ""],
    [
      args("PodTopologySpread", { defaultConstraints: [valid] }),
      `${ARGS}.defaultingType: Invalid value: "System": when .defaultConstraints are not empty`,
    ],
    [
      args("PodTopologySpread", { defaultingType: "All", defaultConstraints: [valid] }),
      `${ARGS}.defaultingType: Unsupported value: "All": supported values: "System", "List"`,
    ],
    [
      spread({}),
      `[${first}.maxSkew: Invalid value: 0: not in valid range (0, inf), ${first}.topologyKey: Required value: can not be empty, ${first}.whenUnsatisfiable: Required value: can not be empty]`,
    ],
    [
      spread({ ...valid, topologyKey: "a b", whenUnsatisfiable: "Maybe", labelSelector: {} }),
      `[${first}.topologyKey: Invalid value: "a b": ${NAME_PART}, ${first}.whenUnsatisfiable: Unsupported value: "Maybe": supported values: "DoNotSchedule", "ScheduleAnyway", ${first}.labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod]`,
    ],
    [
      spread(valid, { ...valid, maxSkew: 2 }),
      `${ARGS}.defaultConstraints[1]: Duplicate value: "{zone, ScheduleAnyway}"`,
    ],
  ]);
});

t.test(
  "terms of the added affinity must be selectors; empty terms and those of weight zero are not read",
  async (t) => {
    const bad = { matchExpressions: [{ key: "a", operator: "Is" }] };
    const operators = 'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"';
    const required = (...nodeSelectorTerms: object[]) =>
      args("NodeAffinity", {
        addedAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
      });
    const preferred = (...terms: object[]) =>
      args("NodeAffinity", { addedAffinity: { preferredDuringSchedulingIgnoredDuringExecution: terms } });
    const term = `${ARGS}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]`;
    const label = (operator: string, values?: string[], key = "a") =>
      required({ matchExpressions: [{ key, operator, ...(values && { values }) }] });
    const field = (operator: string, values?: string[]) =>
      required({ matchFields: [{ key: "metadata.name", operator, ...(values && { values }) }] });
    const at = `${term}.matchExpressions[0]`;
    check(t, [
      [required({}), ""],
      [preferred({ weight: 0, preference: bad }, { weight: 1, preference: {} }), ""],
      [required({}, bad), `${at.replace("Terms[0]", "Terms[1]")}.operator: Unsupported value: "Is": ${operators}`],
      [
        preferred({ weight: 1, preference: bad }),
        `${ARGS}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].matchExpressions[0].operator: Unsupported value: "Is": ${operators}`,
      ],
      [
        label("In"),
        `${at}.values: Invalid value: []string(nil): for 'in', 'notin' operators, values set can't be empty`,
      ],
      [
        label("Exists", ["x"]),
        `${at}.values: Invalid value: []string{"x"}: values set must be empty for exists and does not exist`,
      ],
      [
        label("Gt", ["1", "x"]),
        `[${at}.values: Invalid value: []string{"1", "x"}: for 'Gt', 'Lt' operators, exactly one value is required, ${at}.values[1]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer]`,
      ],
      [
        label("Lt", ["9223372036854775808"]),
        `${at}.values[0]: Invalid value: "9223372036854775808": for 'Gt', 'Lt' operators, the value must be an integer`,
      ],
      [label("Exists", undefined, "a b"), `${at}.key: Invalid value: "a b": ${NAME_PART}`],
      [
        field("In", ["a", "b"]),
        `${term}.matchFields[0].values: Invalid value: []string{"a", "b"}: must have one element`,
      ],
      [
        field("Exists"),
        `${term}.matchFields[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"`,
      ],
    ]);
  },
);

t.test("arguments of NodeResourcesFit are checked when the plugin is created", async (t) => {
  const fit = (scoringStrategy: object) => args("NodeResourcesFit", { scoringStrategy });
  const plugin = `${PROFILE}initializing plugin "NodeResourcesFit": `;
  const strategies = 'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"';
  check(t, [
    [args("NodeResourcesFit", {}), ""],
    [fit({ type: "Most" }), `${plugin}scoringStrategy.type: Unsupported value: "Most": ${strategies}`],
    [fit({}), `${plugin}scoringStrategy.type: Unsupported value: "": ${strategies}`],
    [
      fit({ type: "LeastAllocated", resources: [{ name: "cpu" }, { name: "memory", weight: 101 }] }),
      `${plugin}scoringStrategy.resources[1].weight: Invalid value: 101: resource weight of memory not in valid range (0, 100]`,
    ],
    [
      fit({ type: "LeastAllocated", requestedToCapacityRatio: {} }),
      `${plugin}scoringStrategy.shape: Required value: at least one point must be specified`,
    ],
    [
      args("NodeResourcesFit", { ignoredResources: ["ok", "a b"], ignoredResourceGroups: ["a/b"] }),
      `${plugin}[ignoredResources[1]: Invalid value: "a b": ${NAME_PART}, ignoredResourceGroups[0]: Invalid value: "a/b": resource group name can't contain '/']`,
    ],
  ]);
});

t.test("plugins must exist, extend their point, and be enabled once; one sorts, one binds", async (t) => {
  const enable = (point: string, ...names: string[]) =>
    plugins({ [point]: { enabled: names.map((name) => ({ name })) } });
  check(t, [
    [plugins({ filter: { disabled: [{ name: "Coscheduling" }] } }), ""],
    [enable("filter", "Coscheduling"), `${PROFILE}FilterPlugin "Coscheduling" does not exist`],
    [enable("multiPoint", "Coscheduling"), `${PROFILE}PreFilterPlugin "Coscheduling" does not exist`],
    [enable("bind", "NodeName"), `${PROFILE}plugin "NodeName" does not extend BindPlugin plugin`],
    [
      enable("score", "ImageLocality", "ImageLocality"),
      `${PROFILE}plugin "ImageLocality" already registered as "ScorePlugin"`,
    ],
    [
      enable("multiPoint", "NodePorts", "NodePorts"),
      `${PROFILE}plugin "NodePorts" already registered as "PreFilterPlugin"`,
    ],
    [
      plugins({ multiPoint: { disabled: [{ name: "*" }] } }),
      `${PROFILE}only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0`,
    ],
    [
      plugins({ bind: { disabled: [{ name: "DefaultBinder" }] } }),
      `${PROFILE}at least one bind plugin is needed for profile with scheduler name "default-scheduler"`,
    ],
    [
      plugins({ score: { enabled: [{ name: "ImageLocality", weight: -1 }] } }),
      `${PROFILE}total score of Score plugins could overflow`,
    ],
    [
      enable("filter", "NodeName", "EBSLimits"),
      `profiles[0].plugins.filter.enabled[1]: Invalid value: "EBSLimits": was invalid in version "v1" (KubeSchedulerConfiguration is version "${API_VERSION}")`,
    ],
    [
      args("CinderLimits", {}),
      `profiles[0].pluginConfig[0]: Invalid value: "CinderLimits": was invalid in version "v1" (KubeSchedulerConfiguration is version "${API_VERSION}")`,
    ],
    [
      enable("queueSort", "PrioritySort", "Other"),
      "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled",
    ],
    [
      {
        profiles: [{ schedulerName: "a" }, { schedulerName: "b", ...enable("queueSort", "PrioritySort").profiles[0] }],
      },
      'profiles[1].plugins.queueSort: Invalid value: config.PluginSet{Enabled:[]config.Plugin{config.Plugin{Name:"PrioritySort", Weight:0}}, Disabled:[]config.Plugin(nil)}: queueSort must be the same for all profiles',
    ],
  ]);
});

t.test("extenders have weights, extended resources of their own, and one of them binds", async (t) => {
  const extenders = (...list: object[]) => ({ extenders: list.map((entry) => ({ urlPrefix: "http://h", ...entry })) });
  const managed = (...names: string[]) => ({ managedResources: names.map((name) => ({ name })) });
  const at = "extenders[0].managedResources";
  check(t, [
    [extenders({}), ""],
    [
      extenders({ prioritizeVerb: "p" }),
      "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
    ],
    [
      extenders({ bindVerb: "b" }, { bindVerb: "b" }),
      'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
    ],
    [
      extenders(managed("cpu", "a b", "x.y/z"), managed("x.y/z")),
      `[${at}[0].name: Invalid value: "cpu": is an invalid extended resource name, ${at}[1].name: Invalid value: a b: ${NAME_PART}, extenders[1].managedResources[0].name: Invalid value: "x.y/z": duplicate extender managed resource name]`,
    ],
  ]);
});
