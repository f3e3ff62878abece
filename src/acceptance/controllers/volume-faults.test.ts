/** The story of a volume with faults between the controllers and the API server: it ends as without faults. */
import t from "tap";
import { nodeKind } from "../../api/core/node/kind.ts";
import { persistentVolumeKind } from "../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../api/core/persistent-volume-claim/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { StatusError } from "../../api/status.ts";
import { csiDriverKind } from "../../api/storage/csi-driver/kind.ts";
import { volumeAttachmentKind } from "../../api/storage/volume-attachment/kind.ts";
import { type Fault, faults } from "./faults.ts";
import { plainConnection, WorkloadCluster } from "./workload-cluster.ts";

const CONTROLLERS = [
  "attachdetach",
  "ephemeral-volume",
  "persistentvolume-binder",
  "persistentvolume-expander",
  "pv-protection",
  "pvc-protection",
];
const FINALIZER = "external-attacher/disk-example-com";
const MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach";

function ignoreMissing(error: unknown): undefined {
  if (error instanceof StatusError && (error.status.code === 404 || error.status.code === 409)) return undefined;
  throw error;
}

/** Plays the attacher of the CSI driver, which attaches and detaches at once, until `signal` aborts. */
async function attach({ client }: WorkloadCluster, driver: string, signal: AbortSignal): Promise<void> {
  try {
    for await (const event of client.watch(volumeAttachmentKind, { resourceVersion: "0" }, signal)) {
      if (event.type === "BOOKMARK" || event.type === "DELETED" || event.object.spec.attacher !== driver) continue;
      const { metadata, status } = event.object;
      const { name = "", deletionTimestamp, finalizers = [] } = metadata ?? {};
      const patch = (change: object, options = {}) =>
        client.patch(volumeAttachmentKind, { name }, "merge", change, options).catch(ignoreMissing);
      if (deletionTimestamp !== undefined) {
        if (finalizers.length > 0) await patch({ metadata: { finalizers: null } });
      } else if (finalizers.length === 0) {
        await patch({ metadata: { finalizers: [FINALIZER] } });
      } else if (status?.attached !== true) {
        await patch({ status: { attached: true } }, { subresource: "status" });
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Binds, attaches, moves, and releases a volume; resolves with what was there at each step. */
async function play(cluster: WorkloadCluster, id: string, fault: Fault): Promise<readonly unknown[]> {
  const { client } = cluster;
  const namespace = `v-${id}`;
  const driver = `${namespace}.example.com`;
  const stop = new AbortController();
  const nodes = [`${namespace}-a`, `${namespace}-b`];
  const own = nodes.map((name) => ({ metadata: { name, annotations: { [MANAGED]: "true" } } }));
  await cluster.openNamespace(namespace, fault.rules ?? [], own, stop.signal);
  void attach(cluster, driver, stop.signal);
  cluster.connection = fault.connection?.(cluster) ?? plainConnection;
  for (let instance = 0; instance < (fault.instances ?? 1); instance++) cluster.startControllers();
  const states: unknown[] = [];
  const step = async (): Promise<void> => {
    await cluster.settle(fault.quietMs ?? 3000, async () => true);
    fault.between?.(cluster);
    states.push(await readState(cluster, namespace, nodes));
  };
  const setInUse = (node: string, names: readonly string[] | null) =>
    client.patch(nodeKind, { name: node }, "merge", { status: { volumesInUse: names } }, { subresource: "status" });
  await client.create(csiDriverKind, { metadata: { name: driver }, spec: {} });
  const access = { accessModes: ["ReadWriteOnce" as const], storageClassName: driver };
  await client.create(persistentVolumeKind, {
    metadata: { name: namespace },
    spec: { ...access, capacity: { storage: "2Gi" }, csi: { driver, volumeHandle: "disk" } },
  });
  const request = { ...access, resources: { requests: { storage: "1Gi" } } };
  await client.create(persistentVolumeClaimKind, { metadata: { name: "data", namespace }, spec: request });
  const other = { ...request, storageClassName: "other" };
  const createPod = (name: string, nodeName: string | undefined) =>
    client.create(podKind, {
      metadata: { name, namespace },
      spec: {
        nodeName,
        containers: [{ name: "c", image: "img:1" }],
        volumes: [
          { name: "data", persistentVolumeClaim: { claimName: "data" } },
          { name: "scratch", ephemeral: { volumeClaimTemplate: { spec: other } } },
        ],
      },
    });
  await createPod("one", nodes[0]);
  await step();
  await setInUse(nodes[0]!, [`kubernetes.io/csi/${driver}^disk`]);
  await client.delete(podKind, { name: "one", namespace });
  await createPod("two", nodes[1]);
  await step();
  await setInUse(nodes[0]!, null);
  await step();
  await client.delete(podKind, { name: "two", namespace });
  await client.delete(persistentVolumeClaimKind, { name: "data", namespace });
  await step();
  cluster.connection = plainConnection;
  await cluster.stop();
  stop.abort();
  return states;
}

/** Without what differs between runs. */
async function readState({ client }: WorkloadCluster, namespace: string, nodes: readonly string[]) {
  const volume = await client.get(persistentVolumeKind, { name: namespace });
  const claims = (await client.list(persistentVolumeClaimKind, { namespace })).items;
  const attachments = (await client.list(volumeAttachmentKind)).items;
  const statuses = await Promise.all(nodes.map((name) => client.get(nodeKind, { name })));
  return {
    volume: [volume.status?.phase, volume.spec?.claimRef?.name, volume.metadata?.annotations],
    claims: claims.map(({ metadata, status }) => `${metadata?.name} ${status?.phase}`).sort(),
    attachments: attachments
      .filter(({ spec }) => nodes.includes(spec.nodeName))
      .map(({ spec, status }) => `${nodes.indexOf(spec.nodeName)} ${status?.attached}`)
      .sort(),
    attached: statuses.map(({ status }) => (status?.volumesAttached ?? []).length),
  };
}

t.setTimeout(240_000);

t.test("volumes end as without faults", { timeout: 240_000 }, async (t) => {
  const cluster = await WorkloadCluster.start(t, CONTROLLERS);
  const expected = await play(cluster, "none", { name: "none" });
  const annotations = { "pv.kubernetes.io/bound-by-controller": "yes" };
  const bound = { volume: ["Bound", "data", annotations] };
  t.match(expected, [
    { ...bound, claims: ["data Bound", "one-scratch Pending"], attachments: ["0 true"], attached: [1, 0] },
    // The volume is in use on the first node.
    { ...bound, attachments: ["0 true"], attached: [1, 0] },
    { ...bound, attachments: ["1 true"], attached: [0, 1] },
    { volume: ["Released", "data", annotations], attachments: [], attached: [0, 0] },
  ]);
  for (const [index, fault] of faults.entries()) {
    t.same(await play(cluster, String(index), fault), expected, fault.name);
  }
});
