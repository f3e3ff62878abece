import t from "tap";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { deviceTaintRuleKind } from "../../api/resource/device-taint-rule/kind.ts";
import {
  betaDeviceClassKind,
  betaResourceClaimKind,
  betaResourceSliceKind,
} from "../../api/resource/flat-versions/kinds.ts";
import type { BetaResourceSlice, FlatResourceClaim } from "../../api/resource/flat-versions/schemas.ts";
import type { DeviceTaint, DeviceToleration } from "../../api/resource/schemas.ts";
import { formatTime } from "../../schema/value/time.ts";
import { objectsOf, START, type SyncOnceOptions, syncOnce } from "../../testing/controllers/sync-once.ts";
import { runDeviceTaintEviction } from "./device-taint-eviction-controller.ts";

const DRIVER = "gpu.example.com";
const namespace = "default";
const broken: DeviceTaint = { key: "broken", effect: "NoExecute", timeAdded: formatTime(START) };

function slice(generation: number, ...taints: readonly DeviceTaint[]): BetaResourceSlice {
  const pool = { name: "n1", generation, resourceSliceCount: 1 };
  const devices = [{ name: "a", basic: { taints } }];
  return { metadata: { name: `s${generation}` }, spec: { driver: DRIVER, nodeName: "n1", pool, devices } };
}

function claim(...tolerations: readonly DeviceToleration[]): FlatResourceClaim {
  const results = [{ request: "r", driver: DRIVER, pool: "n1", device: "a", tolerations }];
  const reservedFor = [{ resource: "pods", name: "p", uid: "p" }];
  return {
    metadata: { name: "c", namespace },
    spec: {},
    status: { allocation: { devices: { results } }, reservedFor },
  };
}

function pod(rest: { metadata?: object; spec?: object; status?: object } = {}): Pod {
  return {
    metadata: { name: "p", namespace, uid: "p", ...rest.metadata },
    spec: { containers: [], nodeName: "n1", resourceClaims: [{ name: "c", resourceClaimName: "c" }], ...rest.spec },
    status: rest.status ?? {},
  };
}

interface Setting extends SyncOnceOptions {
  readonly pod?: Pod;
  readonly claim?: FlatResourceClaim;
  readonly slices?: readonly BetaResourceSlice[];
  readonly rules?: readonly NonNullable<Parameters<typeof objectsOf>[1]>[];
}

async function run(setting: Setting) {
  const objects = [
    objectsOf(betaResourceClaimKind, setting.claim ?? claim()),
    objectsOf(betaResourceSliceKind, ...(setting.slices ?? [slice(1, broken)])),
    objectsOf(betaDeviceClassKind),
    { kind: deviceTaintRuleKind as never, objects: setting.rules ?? [] },
  ];
  return await syncOnce(runDeviceTaintEviction, objectsOf(podKind, setting.pod ?? pod()), objects, setting);
}

const EVICTED = ["event DeviceTaintManagerEviction Marking for deletion", "delete pod p", "patch pod p"];
const rule = {
  metadata: { name: "r" },
  spec: { deviceSelector: { driver: DRIVER, pool: "n1", device: "a" }, taint: broken },
};
const seconds = (tolerationSeconds: bigint | number): DeviceToleration =>
  ({ key: "broken", operator: "Exists", tolerationSeconds }) as DeviceToleration;

const cases: readonly (readonly [title: string, setting: Setting, isEvicted: boolean])[] = [
  ["a taint that is not tolerated", {}, true],
  ["a taint of a rule", { slices: [slice(1)], rules: [rule] }, true],
  ["no taint", { slices: [slice(1)] }, false],
  ["a taint that keeps only new pods away", { slices: [slice(1, { ...broken, effect: "NoSchedule" })] }, false],
  ["a taint in an older generation", { slices: [slice(1, broken), slice(2)] }, false],
  ["a taint that is tolerated", { claim: claim({ key: "broken", operator: "Exists" }) }, false],
  ["a taint that is tolerated for a time", { claim: claim(seconds(60)) }, false],
  ["the end of that time", { claim: claim(seconds(60)), advanceMs: 60_000 }, true],
  ["a pod that has ended", { pod: pod({ status: { phase: "Succeeded" } }) }, false],
  ["a pod that is being deleted", { pod: pod({ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }) }, false],
  ["a pod that is not scheduled", { pod: pod({ spec: { nodeName: "" } }) }, false],
  ["another pod of the name", { pod: pod({ metadata: { uid: "q" } }) }, false],
];

t.test("the controller evicts pods from tainted devices", async (t) => {
  for (const [title, setting, isEvicted] of cases) {
    t.same([...(await run(setting))].sort(), isEvicted ? [...EVICTED].sort() : [], title);
  }
});

t.test("an evicted pod has a condition", async (t) => {
  let written: unknown;
  await run({
    show({ verb, object }) {
      if (verb === "patch") written = object;
      return verb;
    },
  });
  const condition = {
    type: "DisruptionTarget",
    reason: "DeletionByDeviceTaintManager",
    message: "Device Taint manager: deleting due to NoExecute taint",
  };
  t.match(written, { status: { conditions: [condition] } });
});
