import t from "tap";
import { eventKind } from "../../../api/core/event/kind.ts";
import type { Event } from "../../../api/core/event/schema.ts";
import { nodeKind } from "../../../api/core/node/kind.ts";
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { Kind } from "../../../api/kind.ts";
import { StatusError } from "../../../api/status.ts";
import { storageClassKind } from "../../../api/storage/storage-class/kind.ts";
import { type KindObjects, objectsOf, syncOnce, type Write } from "../../../testing/controllers/sync-once.ts";
import type { ControllerDeps } from "../../controller.ts";
import { runLocalPathProvisioner } from "./local-path-provisioner.ts";

const UID = "01234567-89ab-cdef-0123-456789abcdef";
const VOLUME = `pvc-${UID}`;
const FINALIZERS = ["external-provisioner.volume.kubernetes.io/finalizer", "kubernetes.io/pv-protection"];
const PROVISIONER = { "volume.kubernetes.io/storage-provisioner": "svc.io/local-path" };
const SELECTED = { ...PROVISIONER, "volume.kubernetes.io/selected-node": "node-a" };

const classes = objectsOf(storageClassKind, {
  metadata: { name: "local-path" },
  provisioner: "svc.io/local-path",
  reclaimPolicy: "Delete",
  volumeBindingMode: "WaitForFirstConsumer",
});
const nodes = objectsOf(nodeKind, { metadata: { name: "node-a", labels: { "kubernetes.io/hostname": "host-a" } } });

function claim(
  annotations: Readonly<Record<string, string>>,
  spec: Partial<NonNullable<PersistentVolumeClaim["spec"]>> = {},
  status: PersistentVolumeClaim["status"] = { phase: "Pending" },
): KindObjects {
  return objectsOf(persistentVolumeClaimKind, {
    metadata: { name: "data", namespace: "ns", uid: UID, annotations },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
      storageClassName: "local-path",
      ...spec,
    },
    status,
  });
}

function volume(
  phase: "Bound" | "Released",
  {
    policy = "Delete",
    terminating = false,
  }: { readonly policy?: "Delete" | "Retain"; readonly terminating?: boolean } = {},
): PersistentVolume {
  return {
    metadata: {
      name: VOLUME,
      uid: "v",
      finalizers: FINALIZERS,
      annotations: { "pv.kubernetes.io/provisioned-by": "svc.io/local-path" },
      ...(terminating ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    spec: {
      capacity: { storage: "1Gi" },
      persistentVolumeReclaimPolicy: policy,
      claimRef: { namespace: "ns", name: "data", uid: UID },
      local: { path: `/volumes/${VOLUME}` },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: ["host-a"] }] },
          ],
        },
      },
    },
    status: { phase },
  };
}

interface Played {
  readonly writes: readonly string[];
  readonly created: PersistentVolume | undefined;
}

/** `calls` of the node are among the writes: `node-a/ensure {"sizeBytes":1}`. */
async function play(
  owner: KindObjects,
  others: readonly KindObjects[],
  respond: () => unknown = () => ({ path: `/volumes/${VOLUME}` }),
): Promise<Played> {
  const calls: string[] = [];
  let created: PersistentVolume | undefined;
  const show = ({ verb, kind, object }: Write): string => {
    let text = `${verb} ${kind.singular} ${object.metadata?.finalizers?.length ?? ""}`.trim();
    if (kind === (eventKind as Kind)) {
      const { type, reason, message } = object as Event;
      text = `${type} ${reason}: ${message}`;
    }
    if (verb === "create" && kind === (persistentVolumeKind as Kind)) created = object as PersistentVolume;
    calls.push(text);
    return text;
  };
  const run = (deps: ControllerDeps): Promise<void> =>
    runLocalPathProvisioner({
      ...deps,
      client: {
        ...deps.client,
        createSubresource: async (_kind, { name }, subresource, body) => {
          calls.push(`${name} ${subresource.replace(VOLUME, "V")} ${JSON.stringify(body)}`);
          return respond();
        },
      },
    });
  await syncOnce(run, owner, others, { show });
  return { writes: calls, created };
}

t.test("a claim gets a volume in a directory of the node that the scheduler selected", async (t) => {
  const { writes, created } = await play(claim(SELECTED), [classes, nodes]);
  t.same(
    writes.toSorted(),
    [
      'Normal Provisioning: External provisioner is provisioning volume for claim "ns/data"',
      `Normal ProvisioningSucceeded: Successfully provisioned volume ${VOLUME}`,
      "create persistentvolume 1",
      'node-a proxy/localVolumes/V/ensure {"sizeBytes":1073741824}',
    ].toSorted(),
  );
  t.match(created, {
    metadata: { name: VOLUME, annotations: { "pv.kubernetes.io/provisioned-by": "svc.io/local-path" } },
    spec: {
      ...volume("Bound").spec,
      claimRef: { kind: "PersistentVolumeClaim", namespace: "ns", name: "data", uid: UID },
      storageClassName: "local-path",
      volumeMode: "Filesystem",
    },
  });
});

t.test("claims that wait for a node, and those of others, get none", async (t) => {
  t.same((await play(claim(PROVISIONER), [classes, nodes])).writes, []);
  t.same((await play(claim({}), [classes, nodes])).writes, []);
  t.same((await play(claim(SELECTED), [nodes])).writes, [], "without the class");
  const existing = objectsOf(persistentVolumeKind, volume("Bound"));
  t.same((await play(claim(SELECTED), [classes, nodes, existing])).writes, [], "the volume exists");
});

t.test("what cannot be provided is reported", async (t) => {
  const failure = (message: string): string =>
    `Warning ProvisioningFailed: failed to provision volume with StorageClass "local-path": ${message}`;
  const block = await play(claim(SELECTED, { volumeMode: "Block" }), [classes, nodes]);
  t.ok(block.writes.includes(failure("volume mode Block is not supported")));
  const selector = await play(claim(SELECTED, { selector: {} }), [classes, nodes]);
  t.ok(selector.writes.includes(failure("claim.spec.selector is not supported")));
  const away = await play(claim(SELECTED), [classes, nodes], () => {
    throw new StatusError(503, "ServiceUnavailable", "the agent is away");
  });
  t.ok(away.writes.includes(failure("the agent is away")));
  const strange = await play(claim(SELECTED), [classes, nodes], () => ({ path: "relative" }));
  t.ok(strange.writes.includes(failure(`the agent of node node-a returned no path of volume ${VOLUME}`)));
  const gone = await play(claim(SELECTED), [classes]);
  t.ok(gone.writes.includes(failure('node "node-a" not found')));
  t.ok(gone.writes.includes("patch persistentvolumeclaim"), "the scheduler selects another node");
});

t.test("a released volume loses its directory first, then its object", async (t) => {
  const { writes } = await play(objectsOf(persistentVolumeKind, volume("Released")), [nodes]);
  t.same(writes, ["node-a proxy/localVolumes/V/remove {}", "delete persistentvolume", "update persistentvolume 1"]);
  const interrupted = objectsOf(persistentVolumeKind, volume("Released", { terminating: true }));
  t.same((await play(interrupted, [nodes])).writes, [
    "node-a proxy/localVolumes/V/remove {}",
    "update persistentvolume 1",
  ]);
  t.same(
    (await play(objectsOf(persistentVolumeKind, volume("Released")), [])).writes,
    ["delete persistentvolume", "update persistentvolume 1"],
    "the node was removed from the cluster",
  );
});

t.test("a directory that cannot be removed keeps its volume, with an event", async (t) => {
  const fail = async (error: StatusError) => {
    const { writes } = await play(objectsOf(persistentVolumeKind, volume("Released")), [nodes], () => {
      throw error;
    });
    t.equal(writes[0], "node-a proxy/localVolumes/V/remove {}");
    return writes.slice(1);
  };
  t.same(await fail(new StatusError(409, "Conflict", "it is mounted")), ["Normal VolumeDelete: it is mounted"]);
  t.same(await fail(new StatusError(500, "InternalError", "no")), ["Warning VolumeFailedDelete: no"]);
});

t.test("the data of retained volumes and of claims in use stays", async (t) => {
  const sync = async (found: PersistentVolume) => (await play(objectsOf(persistentVolumeKind, found), [nodes])).writes;
  t.same(await sync(volume("Released", { policy: "Retain" })), []);
  t.same(await sync(volume("Released", { policy: "Retain", terminating: true })), ["update persistentvolume 1"]);
  t.same(await sync(volume("Bound")), []);
  t.same(await sync(volume("Bound", { terminating: true })), []);
});

t.test("a claim that requests more gets more", async (t) => {
  const grown = { volumeName: VOLUME, resources: { requests: { storage: "3Gi" } } };
  const status = { phase: "Bound" as const, capacity: { storage: "1Gi" } };
  const { writes } = await play(claim(SELECTED, grown, status), [
    nodes,
    objectsOf(persistentVolumeKind, volume("Bound")),
  ]);
  t.same(
    writes.toSorted(),
    [
      `Normal Resizing: External resizer is resizing volume ${VOLUME}`,
      "Normal VolumeResizeSuccessful: Resize volume succeeded",
      'node-a proxy/localVolumes/V/ensure {"sizeBytes":3221225472}',
      "status persistentvolumeclaim",
      "update persistentvolume 2",
    ].toSorted(),
  );
});
