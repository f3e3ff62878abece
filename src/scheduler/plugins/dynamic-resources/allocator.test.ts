import t from "tap";
import type {
  Device,
  DeviceClass,
  DeviceRequest,
  ResourceClaim,
  ResourceClaimSpec,
  ResourceSlice,
  ResourceSliceSpec,
} from "../../../api/resource/schemas.ts";
import { type AllocationOutcome, allocateDevices } from "./allocator.ts";
import type { DeviceFeatures } from "./device-requests.ts";
import { SearchBudget } from "./search-budget.ts";
import { SelectorCache } from "./selector-cache.ts";

const DRIVER = "gpu.example.com";
const node = { name: "n1", labels: { zone: "a" } };
const allFeatures: DeviceFeatures = {
  adminAccess: true,
  prioritizedList: true,
  partitionableDevices: true,
  deviceTaints: true,
};

const gpu = (name: string, rest: Partial<Device> = {}): Device => ({ name, ...rest });
const memory = (name: string, amount: string): Device => gpu(name, { capacity: { memory: { value: amount } } });
const model = (name: string, value: string): Device => gpu(name, { attributes: { model: { string: value } } });

function slice(devices: readonly Device[], spec: Partial<ResourceSliceSpec> = {}): ResourceSlice {
  const pool = { name: "n1", generation: 1, resourceSliceCount: 1 };
  return { metadata: { name: "s" }, spec: { driver: DRIVER, nodeName: "n1", pool, devices, ...spec } };
}

type Exact = Partial<NonNullable<DeviceRequest["exactly"]>>;
const cel = (expression: string) => ({ selectors: [{ cel: { expression } }] });
const one = (name: string, exact: Exact = {}): DeviceRequest => ({
  name,
  exactly: { deviceClassName: "gpu", allocationMode: "ExactCount", count: 1, ...exact },
});
const sub = (name: string, rest: object = {}) => ({
  name,
  deviceClassName: "gpu",
  allocationMode: "ExactCount",
  count: 1,
  ...rest,
});
const all = (name: string, exact: Exact = {}): DeviceRequest => ({
  name,
  exactly: { deviceClassName: "gpu", allocationMode: "All", ...exact },
});

function claim(requests: readonly DeviceRequest[], devices: Partial<ResourceClaimSpec["devices"]> = {}): ResourceClaim {
  return { metadata: { name: "c", namespace: "default" }, spec: { devices: { requests, ...devices } } };
}

interface Setting {
  readonly claims?: readonly ResourceClaim[];
  readonly slices?: readonly ResourceSlice[];
  readonly allocated?: readonly string[];
  readonly features?: Partial<DeviceFeatures>;
  readonly class?: DeviceClass["spec"];
  readonly steps?: number;
}

function run({ claims = [], slices = [], allocated = [], features = {}, steps, ...rest }: Setting): AllocationOutcome {
  const gpuClass = { metadata: { name: "gpu" }, spec: rest.class ?? {} };
  return allocateDevices(node, slices, {
    claims,
    findClass: (name) => (name === "gpu" ? gpuClass : undefined),
    isAllocated: (id) => allocated.includes(id),
    features: { ...allFeatures, ...features },
    selectors: new SelectorCache(),
    budget: new SearchBudget(steps),
  });
}

/** `request=device` of each result of each claim. */
function devicesOf(outcome: AllocationOutcome): readonly (readonly string[])[] | string {
  if ("error" in outcome) return `error: ${outcome.error}`;
  if ("rejection" in outcome) return outcome.rejection;
  return outcome.allocations.map(({ devices }) =>
    (devices?.results ?? []).map(({ request, device }) => `${request}=${device}`),
  );
}

type Expected = readonly (readonly string[])[] | string | RegExp;

const NONE = "cannot allocate all claims";
const two = slice([gpu("a"), gpu("b")]);

const cases: readonly (readonly [title: string, setting: Setting, expected: Expected])[] = [
  ["no devices", { claims: [claim([one("r")])] }, NONE],
  ["one device", { claims: [claim([one("r")])], slices: [two] }, [["r=a"]]],
  ["a count", { claims: [claim([one("r", { count: 2 })])], slices: [two] }, [["r=a", "r=b"]]],
  ["more than there are", { claims: [claim([one("r", { count: 3 })])], slices: [two] }, NONE],
  ["an allocated device", { claims: [claim([one("r")])], slices: [two], allocated: [`${DRIVER}/n1/a`] }, [["r=b"]]],
  ["two claims", { claims: [claim([one("r")]), claim([one("s")])], slices: [two] }, [["r=a"], ["s=b"]]],
  ["three claims", { claims: [claim([one("r")]), claim([one("s")]), claim([one("x")])], slices: [two] }, NONE],
  ["all devices", { claims: [claim([all("r")])], slices: [two] }, [["r=a", "r=b"]]],
  ["all of none", { claims: [claim([all("r")])], slices: [slice([])] }, NONE],
  ["all, one of them in use", { claims: [claim([all("r")])], slices: [two], allocated: [`${DRIVER}/n1/b`] }, NONE],
  [
    "all of an incomplete pool",
    {
      claims: [claim([all("r")])],
      slices: [slice([gpu("a")], { pool: { name: "n1", generation: 1, resourceSliceCount: 2 } })],
    },
    `error: claim default/c, request r: asks for all devices, but resource pool ${DRIVER}/n1 is currently being updated`,
  ],
  [
    "one of an incomplete pool",
    {
      claims: [claim([one("r")])],
      slices: [slice([gpu("a")], { pool: { name: "n1", generation: 1, resourceSliceCount: 2 } })],
    },
    [["r=a"]],
  ],
  [
    "an older generation",
    {
      claims: [claim([one("r")])],
      slices: [two, slice([gpu("new")], { pool: { name: "n1", generation: 2, resourceSliceCount: 1 } })],
    },
    [["r=new"]],
  ],
  [
    "duplicate names",
    { claims: [claim([one("r")])], slices: [slice([gpu("a"), gpu("a")])] },
    "error: pool n1 is invalid: duplicate device name a",
  ],
  ["another node", { claims: [claim([one("r")])], slices: [slice([gpu("a")], { nodeName: "n2" })] }, NONE],
  [
    "all nodes",
    { claims: [claim([one("r")])], slices: [slice([gpu("a")], { nodeName: undefined, allNodes: true })] },
    [["r=a"]],
  ],
  [
    "a selector of nodes",
    {
      claims: [claim([one("r")])],
      slices: [
        slice([gpu("a")], { nodeName: undefined, nodeSelector: zone("a") }),
        slice([gpu("b")], { nodeName: undefined, nodeSelector: zone("b") }),
      ],
    },
    [["r=a"]],
  ],
  [
    "a selector of capacity",
    {
      claims: [claim([one("r", cel(`device.capacity["${DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0`))])],
      slices: [slice([memory("small", "8Gi"), memory("large", "80Gi")])],
    },
    [["r=large"]],
  ],
  [
    "selectors of the class",
    {
      claims: [claim([one("r")])],
      slices: [
        two,
        slice([gpu("x")], { driver: "net.example.com", pool: { name: "net", generation: 1, resourceSliceCount: 1 } }),
      ],
      class: cel(`device.driver == "net.example.com"`),
    },
    [["r=x"]],
  ],
  [
    "a selector of an attribute that a device lacks",
    { claims: [claim([one("r", cel(`device.attributes["${DRIVER}"].model == "A"`))])], slices: [two] },
    "error: claim default/c: selector #0: CEL runtime error: no such key: model",
  ],
  [
    "a guarded selector",
    {
      claims: [claim([one("r", cel(`"model" in device.attributes["other.com"] || "other.com" in device.attributes`))])],
      slices: [two],
    },
    NONE,
  ],
  [
    "a version",
    {
      claims: [claim([one("r", cel(`device.attributes["${DRIVER}"].v.isGreaterThan(semver("1.9.0"))`))])],
      slices: [
        slice([
          gpu("a", { attributes: { v: { version: "1.2.0" } } }),
          gpu("b", { attributes: { v: { version: "1.10.0" } } }),
        ]),
      ],
    },
    [["r=b"]],
  ],
  [
    "an expression that does not compile",
    { claims: [claim([one("r", cel("device.nothing"))])], slices: [two] },
    /CEL compile error: compilation failed: .*undefined field 'nothing'/,
  ],
  [
    "the same attribute",
    {
      claims: [claim([one("r"), one("s")], { constraints: [{ matchAttribute: `${DRIVER}/model` }] })],
      slices: [slice([model("a", "X"), model("b", "Y"), model("c", "X")])],
    },
    [["r=a", "s=c"]],
  ],
  [
    "the same attribute, found by going back",
    {
      claims: [claim([one("r"), one("s"), one("x")], { constraints: [{ matchAttribute: `${DRIVER}/model` }] })],
      slices: [slice([model("a", "X"), model("b", "Y"), model("c", "Y"), model("d", "Y")])],
    },
    [["r=b", "s=c", "x=d"]],
  ],
  [
    "the same attribute of some requests",
    {
      claims: [
        claim([one("r"), one("s"), one("x")], {
          constraints: [{ requests: ["r", "x"], matchAttribute: `${DRIVER}/model` }],
        }),
      ],
      slices: [slice([model("a", "X"), model("b", "Y"), model("c", "X")])],
    },
    [["r=a", "s=b", "x=c"]],
  ],
  [
    "all devices with different attributes",
    {
      claims: [claim([all("r")], { constraints: [{ matchAttribute: `${DRIVER}/model` }] })],
      slices: [slice([model("a", "X"), model("b", "Y")])],
    },
    `error: claim default/c, request r: cannot add device ${DRIVER}/n1/b because a claim constraint would not be satisfied`,
  ],
  [
    "the first alternative",
    {
      claims: [claim([{ name: "r", firstAvailable: [sub("big", { count: 2 }), sub("small")] }])],
      slices: [two],
    },
    [["r/big=a", "r/big=b"]],
  ],
  [
    "the second alternative",
    {
      claims: [claim([{ name: "r", firstAvailable: [sub("big", { count: 3 }), sub("small")] }, one("s")])],
      slices: [two],
    },
    [["r/small=a", "s=b"]],
  ],
  [
    "alternatives without the gate",
    {
      claims: [claim([{ name: "r", firstAvailable: [sub("x")] }])],
      slices: [two],
      features: { prioritizedList: false },
    },
    "error: claim default/c, request r: has subrequests, but the DRAPrioritizedList feature is disabled",
  ],
  [
    "administrative access to a device in use",
    { claims: [claim([one("r", { adminAccess: true })])], slices: [two], allocated: [`${DRIVER}/n1/a`] },
    [["r=a"]],
  ],
  [
    "administrative access without the gate",
    { claims: [claim([one("r", { adminAccess: true })])], slices: [two], features: { adminAccess: false } },
    "error: claim default/c, request r: admin access is requested, but the feature is disabled",
  ],
  [
    "a tainted device",
    {
      claims: [claim([one("r")])],
      slices: [slice([gpu("a", { taints: [{ key: "k", effect: "NoSchedule" }] }), gpu("b")])],
    },
    [["r=b"]],
  ],
  [
    "a tolerated taint",
    {
      claims: [claim([one("r", { tolerations: [{ key: "k", operator: "Exists" }] })])],
      slices: [slice([gpu("a", { taints: [{ key: "k", value: "v", effect: "NoExecute" }] })])],
    },
    [["r=a"]],
  ],
  [
    "a taint without the gate",
    {
      claims: [claim([one("r")])],
      slices: [slice([gpu("a", { taints: [{ key: "k", effect: "NoSchedule" }] })])],
      features: { deviceTaints: false },
    },
    [["r=a"]],
  ],
  [
    "partitions of a device",
    { claims: [claim([one("r", { count: 2 })])], slices: [partitions("10Gi", "6Gi", "6Gi", "4Gi")] },
    [["r=p0", "r=p2"]],
  ],
  [
    "partitions beside one in use",
    { claims: [claim([one("r")])], slices: [partitions("10Gi", "6Gi", "6Gi", "4Gi")], allocated: [`${DRIVER}/n1/p1`] },
    [["r=p2"]],
  ],
  [
    "partitions without the gate",
    { claims: [claim([one("r")])], slices: [partitions("10Gi", "6Gi")], features: { partitionableDevices: false } },
    NONE,
  ],
  [
    "devices that select their nodes",
    {
      claims: [claim([one("r")])],
      slices: [
        slice([gpu("a", { nodeName: "n2" }), gpu("b", { nodeSelector: zone("a") })], {
          nodeName: undefined,
          perDeviceNodeSelection: true,
        }),
      ],
    },
    [["r=b"]],
  ],
  [
    "an unknown mode",
    { claims: [claim([one("r", { allocationMode: "Some" })])], slices: [two] },
    "error: claim default/c, request r: unsupported count mode Some",
  ],
  [
    "a class that does not exist",
    { claims: [claim([one("r", { deviceClassName: "x" })])], slices: [two] },
    'error: claim default/c, request r: could not retrieve device class x: deviceclass.resource.k8s.io "x" not found',
  ],
  [
    "more devices than a claim may have",
    { claims: [claim([one("r", { count: 33 })])], slices: [two] },
    "error: claim default/c: number of requested devices 33 exceeds the claim limit of 32",
  ],
  [
    "an empty constraint",
    { claims: [claim([one("r")], { constraints: [{}] })], slices: [two] },
    "error: claim default/c, constraint #0: empty constraint (unsupported constraint type?)",
  ],
];

function zone(value: string) {
  return { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In" as const, values: [value] }] }] };
}

function partitions(total: string, ...sizes: readonly string[]): ResourceSlice {
  const devices = sizes.map((value, index) =>
    gpu(`p${index}`, { consumesCounters: [{ counterSet: "gpu-0", counters: { memory: { value } } }] }),
  );
  return slice(devices, { sharedCounters: [{ name: "gpu-0", counters: { memory: { value: total } } }] });
}

t.test("allocateDevices()", async (t) => {
  for (const [title, setting, expected] of cases) {
    t.match(devicesOf(run(setting)), expected, title);
  }
});

t.test("allocateDevices() ends a search with too many combinations", async (t) => {
  const devices = Array.from({ length: 60 }, (_, index) => model(`d${index}`, String(index)));
  const constraints = [{ matchAttribute: `${DRIVER}/model`, requests: ["r", "last"] }];
  const requests = [one("r", { count: 1 }), one("middle", { count: 20 }), one("last")];
  const outcome = run({ claims: [claim(requests, { constraints })], slices: [slice(devices)] });
  t.same(outcome, { rejection: "timed out trying to allocate devices" });
});

t.test("allocateDevices() returns configurations and the nodes where the devices are", async (t) => {
  const opaque = (value: string) => ({ opaque: { driver: DRIVER, parameters: { value } } });
  const config = [opaque("all"), { requests: ["r"], ...opaque("r") }, { requests: ["s"], ...opaque("s") }];
  const request = {
    name: "r",
    firstAvailable: [sub("x", { tolerations: [{ key: "k", operator: "Exists" as const }] })],
  };
  const outcome = run({
    claims: [claim([request], { config: [...config, { requests: ["r/x"], ...opaque("r/x") }] })],
    slices: [slice([gpu("a")], { nodeName: undefined, nodeSelector: zone("a") })],
    class: { config: [opaque("class")] },
  });
  t.same(outcome, {
    allocations: [
      {
        devices: {
          results: [
            {
              request: "r/x",
              driver: DRIVER,
              pool: "n1",
              device: "a",
              tolerations: [{ key: "k", operator: "Exists" }],
            },
          ],
          config: [
            { source: "FromClass", ...opaque("class") },
            { source: "FromClaim", ...opaque("all") },
            { source: "FromClaim", requests: ["r"], ...opaque("r") },
            { source: "FromClaim", requests: ["r/x"], ...opaque("r/x") },
          ],
        },
        nodeSelector: zone("a"),
      },
    ],
  });
  const local = run({ claims: [claim([one("r", { adminAccess: true })])], slices: [two] });
  t.match(local, {
    allocations: [
      {
        devices: { results: [{ request: "r", adminAccess: true }] },
        nodeSelector: {
          nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["n1"] }] }],
        },
      },
    ],
  });
});
