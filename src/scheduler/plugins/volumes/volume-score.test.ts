import t from "tap";
import { createSchedulerFixture } from "../../../testing/scheduler/scheduler-fixture.ts";

const HOST = "kubernetes.io/hostname";
const node = (name: string) => ({
  metadata: { name, labels: { [HOST]: name } },
  status: { allocatable: { cpu: "4", memory: "8Gi", pods: "10" } },
});
const claim = (name: string, storage: string) => ({
  metadata: { name, namespace: "default" },
  spec: { storageClassName: "local", accessModes: ["ReadWriteOnce" as const], resources: { requests: { storage } } },
});
const volume = (name: string, storage: string, host: string) => ({
  metadata: { name },
  spec: {
    storageClassName: "local",
    accessModes: ["ReadWriteOnce" as const],
    capacity: { storage },
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: HOST, operator: "In" as const, values: [host] }] }],
      },
    },
  },
  status: { phase: "Available" as const },
});
const capacity = (host: string, amount: string) => ({
  metadata: { name: host, namespace: "default" },
  storageClassName: "local",
  capacity: amount,
  nodeTopology: { matchLabels: { [HOST]: host } },
});
const pod = (...claims: readonly string[]) => ({
  metadata: { name: "p", namespace: "default", uid: "p" },
  spec: {
    containers: [{ name: "c" }],
    volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
  },
});
const cluster = {
  nodes: [node("small"), node("large")],
  claims: [claim("a", "10Gi"), claim("b", "20Gi")],
  storageClasses: [
    { metadata: { name: "local" }, provisioner: "csi.test", volumeBindingMode: "WaitForFirstConsumer" as const },
  ],
  csiDrivers: [{ metadata: { name: "csi.test" }, spec: { storageCapacity: true } }],
  storageCapacities: [capacity("small", "40Gi"), capacity("large", "100Gi")],
};
const features = { storageCapacityScoring: true };
const packing = [
  { utilization: 0, score: 0 },
  { utilization: 100, score: 10 },
];
const withShape = (shape: typeof packing) => ({
  profiles: [{ schedulerName: "default-scheduler", pluginConfig: { VolumeBinding: { shape } } }],
});

t.test("without StorageCapacityScoring VolumeBinding gives no scores", async (t) => {
  const { scores } = await createSchedulerFixture(cluster).decide(pod("a"));
  t.equal(scores.VolumeBinding, undefined);
});

t.test("the node that keeps the most of its storage capacity has the highest score", async (t) => {
  const fixture = createSchedulerFixture({ ...cluster, features });
  t.match(await fixture.decide(pod("a")), { node: "large", scores: { VolumeBinding: [75, 90] } });
  t.match(await fixture.decide(pod("a", "b")), { scores: { VolumeBinding: [25, 70] } }, "claims share the capacity");
});

t.test("the shape of the configuration can prefer full nodes", async (t) => {
  const fixture = createSchedulerFixture({ ...cluster, features, config: withShape(packing) });
  t.match(await fixture.decide(pod("a")), { node: "small", scores: { VolumeBinding: [25, 10] } });
});

t.test("volumes that exist count instead of what could be provisioned", async (t) => {
  const volumes = [volume("v1", "10Gi", "small"), volume("v2", "50Gi", "large")];
  const fixture = createSchedulerFixture({ ...cluster, volumes, features });
  t.match(await fixture.decide(pod("a")), { node: "large", scores: { VolumeBinding: [0, 80] } });
  t.match(await fixture.decide(pod("a", "b")), { scores: { VolumeBinding: [0, 80] } }, "of the bound claims only");
});
