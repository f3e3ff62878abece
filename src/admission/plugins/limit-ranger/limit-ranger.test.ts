import t from "tap";
import { limitRangeKind } from "../../../api/core/limit-range/kind.ts";
import type { LimitRange, LimitRangeItem } from "../../../api/core/limit-range/schema.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { type ClusterObjects, readerOf, rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { limitRanger } from "./limit-ranger.ts";

type Amounts = Readonly<Record<string, string>>;
interface Resources {
  readonly requests?: Amounts;
  readonly limits?: Amounts;
}

function pod(containers: readonly Resources[], inits: readonly (Resources & { always?: boolean })[] = []): Pod {
  const container = (resources: Resources, name: string) => ({ name, image: "web:1", resources });
  return {
    metadata: { name: "web", namespace: "default" },
    spec: {
      containers: containers.map((resources, i) => container(resources, `c${i}`)),
      initContainers: inits.map(({ always, ...resources }, i) => ({
        ...container(resources, `i${i}`),
        ...(always === true ? { restartPolicy: "Always" } : {}),
      })),
    },
  } as Pod;
}

function ranges(...limits: readonly LimitRangeItem[]): ClusterObjects {
  const range: LimitRange = { metadata: { name: "range", namespace: "default" }, spec: { limits } };
  return [[limitRangeKind, range]];
}

function plugin(present: ClusterObjects) {
  return limitRanger({ reader: readerOf(present) });
}

t.test("limitRanger sets defaults of containers and init containers, and lists them in an annotation", async (t) => {
  const present = ranges({
    type: "Container",
    default: { memory: "512Mi", cpu: "1" },
    defaultRequest: { memory: "256Mi", cpu: "100m" },
  });
  const given = pod([{ requests: { cpu: "50m" } }, {}], [{ limits: { memory: "1Gi" } }]);
  const { object } = await runPlugin(plugin(present), podKind, given);
  t.match(object.spec, {
    containers: [
      { resources: { requests: { cpu: "50m", memory: "256Mi" }, limits: { cpu: "1", memory: "512Mi" } } },
      { resources: { requests: { cpu: "100m", memory: "256Mi" }, limits: { cpu: "1", memory: "512Mi" } } },
    ],
    initContainers: [
      { resources: { requests: { cpu: "100m", memory: "256Mi" }, limits: { cpu: "1", memory: "1Gi" } } },
    ],
  });
  t.equal(
    object.metadata?.annotations?.["kubernetes.io/limit-ranger"],
    "LimitRanger plugin set: memory request for container c0; cpu, memory limit for container c0; " +
      "cpu, memory request for container c1; cpu, memory limit for container c1; " +
      "cpu, memory request for init container i0; cpu limit for init container i0",
  );
  const complete = pod([{ requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "1", memory: "1Gi" } }]);
  t.equal((await runPlugin(plugin(present), podKind, complete)).object.metadata?.annotations, undefined);
});

t.test("limitRanger applies several ranges in order, and the first default of a resource takes effect", async (t) => {
  const [[kind, first]] = ranges({ type: "Container", default: { cpu: "1" } }) as [ClusterObjects[number]];
  const second: LimitRange = {
    metadata: { name: "second", namespace: "default" },
    spec: { limits: [{ type: "Container", default: { cpu: "2", memory: "1Gi" } }] },
  };
  const { object } = await runPlugin(plugin([[kind, first] as const, [kind, second] as const]), podKind, pod([{}]));
  t.same(object.spec?.containers[0]?.resources?.limits, { cpu: "1", memory: "1Gi" });
});

const cases: readonly (readonly [string, LimitRangeItem, Pod, string])[] = [
  [
    "less than the minimum",
    { type: "Container", min: { cpu: "100m" } },
    pod([{ requests: { cpu: "50m" } }]),
    "minimum cpu usage per Container is 100m, but request is 50m",
  ],
  [
    "no request where there is a minimum",
    { type: "Container", min: { memory: "1Mi" } },
    pod([{}]),
    "minimum memory usage per Container is 1Mi.  No request is specified",
  ],
  [
    "more than the maximum, in an init container too",
    { type: "Container", max: { cpu: "1", memory: "1Gi" } },
    pod([{ limits: { cpu: "2", memory: "1Gi" } }], [{ limits: { cpu: "1", memory: "2Gi" } }]),
    "[maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi, but limit is 2Gi]",
  ],
  [
    "no limit where there is a maximum, reported once for two containers",
    { type: "Container", max: { cpu: "1" } },
    pod([{}, {}]),
    "maximum cpu usage per Container is 1.  No limit is specified",
  ],
  [
    "a limit too far above the request",
    { type: "Container", maxLimitRequestRatio: { cpu: "1500m" } },
    pod([{ requests: { cpu: "1" }, limits: { cpu: "2" } }]),
    "cpu max limit to request ratio per Container is 1500m, but provided ratio is 2.000000",
  ],
  [
    "a limit without request",
    { type: "Container", maxLimitRequestRatio: { cpu: "2" } },
    pod([{ limits: { cpu: "2" } }]),
    "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
  ],
  [
    "containers and sidecars that exceed the maximum together",
    { type: "Pod", max: { cpu: "2" } },
    pod([{ limits: { cpu: "1" } }, { limits: { cpu: "500m" } }], [{ limits: { cpu: "1" }, always: true }]),
    "maximum cpu usage per Pod is 2, but limit is 2500m",
  ],
  [
    "an init container that exceeds the maximum together with a sidecar",
    { type: "Pod", max: { cpu: "2" } },
    pod([{ limits: { cpu: "1" } }], [{ limits: { cpu: "1" }, always: true }, { limits: { cpu: "1500m" } }]),
    "maximum cpu usage per Pod is 2, but limit is 2500m",
  ],
  [
    "an init container before a sidecar, within the maximum",
    { type: "Pod", max: { cpu: "2" } },
    pod([{ limits: { cpu: "1" } }], [{ limits: { cpu: "1500m" } }, { limits: { cpu: "1" }, always: true }]),
    "",
  ],
];
for (const [what, item, given, why] of cases) {
  t.test(`limitRanger and pods: ${what}`, async (t) => {
    const expected = why === "" ? "" : `pods "web" is forbidden: ${why}`;
    t.equal(await rejectionOf(runPlugin(plugin(ranges(item)), podKind, given)), expected);
  });
}

t.test("limitRanger validates pods on creation and resize, unless they are being deleted", async (t) => {
  const present = ranges({ type: "Container", max: { cpu: "1" } });
  const large = pod([{ limits: { cpu: "2" } }]);
  const update = { operation: "UPDATE", oldObject: pod([{}]) } as const;
  t.equal(await rejectionOf(runPlugin(plugin(present), podKind, large, update)), "");
  t.match(
    await rejectionOf(runPlugin(plugin(present), podKind, large, { ...update, subresource: "resize" })),
    /but limit is 2/,
  );
  const terminating = {
    ...update.oldObject,
    metadata: { name: "web", deletionTimestamp: "2026-01-01T00:00:00Z" },
  } as Pod;
  const fields = { ...update, oldObject: terminating, subresource: "resize" };
  t.equal(await rejectionOf(runPlugin(plugin(present), podKind, large, fields)), "");
});

t.test("limitRanger validates the storage requests of claims", async (t) => {
  const present = ranges({ type: "PersistentVolumeClaim", min: { storage: "1Gi" }, max: { storage: "2Gi" } });
  const claim = (storage: string): PersistentVolumeClaim =>
    ({
      metadata: { name: "data", namespace: "default" },
      spec: { resources: { requests: { storage } } },
    }) as PersistentVolumeClaim;
  const verdict = (storage: string, oldObject?: PersistentVolumeClaim) =>
    rejectionOf(
      runPlugin(
        plugin(present),
        persistentVolumeClaimKind,
        claim(storage),
        oldObject === undefined ? {} : { oldObject },
      ),
    );
  t.equal(await verdict("2Gi"), "");
  const why = 'persistentvolumeclaims "data" is forbidden:';
  t.equal(await verdict("3Gi"), `${why} maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi`);
  t.equal(await verdict("1Mi"), `${why} minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi`);
  t.match(await verdict("3Gi", claim("1Gi")), /but request is 3Gi/);
});
