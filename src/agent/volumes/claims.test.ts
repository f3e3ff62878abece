import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { PersistentVolume } from "../../api/core/persistent-volume/schema.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Volume } from "../../api/core/volume/schema.ts";
import { ClaimError, resolveClaim, resolveHostPath } from "./claims.ts";

const root = await mkdtemp(join(tmpdir(), "svc-claims-"));
t.teardown(() => rm(root, { recursive: true }));

const pod: Pod = { metadata: { name: "web", namespace: "shop", uid: "uid-1" }, spec: { containers: [] } };
const volume: Volume = { name: "data", persistentVolumeClaim: { claimName: "data" } };
const claim: PersistentVolumeClaim = {
  metadata: { name: "data", namespace: "shop", uid: "claim-1" },
  spec: { volumeName: "pv1" },
  status: { phase: "Bound" },
};
const local: PersistentVolume = {
  metadata: { name: "pv1" },
  spec: { claimRef: { uid: "claim-1" }, local: { path: root }, capacity: { storage: "1Gi" } },
};

function path(found: PersistentVolumeClaim | undefined, bound: PersistentVolume | undefined, of = volume) {
  const source = { claim: async () => found, persistentVolume: async () => bound };
  return resolveClaim(source, pod, of).then(({ volume: each }) => resolveHostPath(each));
}

t.test("resolveHostPath() returns the path of a claim's volume on the node", async (t) => {
  t.equal(await path(claim, local), root);
  const hostPath = { path: join(root, "made") };
  t.equal(await path(claim, { ...local, spec: { claimRef: { uid: "claim-1" }, hostPath } }), hostPath.path);
});

t.test("resolveClaim() rejects with kubelet's messages", async (t) => {
  const cases: readonly (readonly [Partial<PersistentVolumeClaim> | undefined, string])[] = [
    [undefined, 'failed to fetch PVC from API server: persistentvolumeclaims "data" not found'],
    [{ status: { phase: "Pending" } }, "PVC is not bound"],
    [{ metadata: { ...claim.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } }, "PVC is being deleted"],
    [
      { metadata: { ...claim.metadata, uid: "claim-2" } },
      "found PV object pv1 but its pv.Spec.ClaimRef.UID claim-1 does not point to claim.UID claim-2",
    ],
    [{ spec: { ...claim.spec, volumeName: "" } }, "PVC has empty pvc.Spec.VolumeName"],
  ];
  for (const [change, text] of cases) {
    const found = change && { ...claim, ...change };
    await t.rejects(path(found, local), { name: "ClaimError", message: `error processing PVC shop/data: ${text}` });
  }
  await t.rejects(path(claim, undefined), /failed to fetch PV pv1 from API server: persistentvolumes "pv1" not found/);
  const free = { ...local, spec: { local: { path: root } } };
  await t.rejects(path(claim, free), /found PV object pv1 but it has a nil pv.Spec.ClaimRef indicating it is not yet/);
});

t.test("resolveClaim() accepts a deleted claim that the finalizer of claims in use protects", async (t) => {
  const finalizers = ["kubernetes.io/pvc-protection"];
  const deleted = { ...claim.metadata, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers };
  t.equal(await path({ ...claim, metadata: deleted }, local), root);
});

t.test("resolveClaim() refuses a claim with an ephemeral volume's name that is not owned by the pod", async (t) => {
  const ephemeral: Volume = { name: "data", ephemeral: {} };
  const owned = (uid: string) => {
    const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name: "web", uid, controller: true }];
    return { ...claim, metadata: { ...claim.metadata, ownerReferences } };
  };
  t.equal(await path(owned("uid-1"), local, ephemeral), root);
  await t.rejects(path(owned("uid-0"), local, ephemeral), ClaimError);
  await t.rejects(path(claim, local, ephemeral), /was not created for pod shop\/web \(pod is not owner\)/);
});

t.test("resolveHostPath() refuses unsupported volume types by name", async (t) => {
  const nfs = { claimRef: { uid: "claim-1" }, nfs: { server: "s", path: "/" } };
  await t.rejects(path(claim, { ...local, spec: nfs }), /"pv1" of type nfs is not supported/);
  await t.rejects(path(claim, { ...local, spec: { ...local.spec, volumeMode: "Block" } }), /is not a block device/);
  const absent = { claimRef: { uid: "claim-1" }, local: { path: join(root, "absent") } };
  await t.rejects(path(claim, { ...local, spec: absent }), {
    operation: "MountVolume.NewMounter initialization",
    message: `path "${join(root, "absent")}" does not exist`,
  });
});

t.test("resolveClaim() checks volumeMode against volumeMounts and volumeDevices", async (t) => {
  const source = (spec: Partial<PersistentVolume["spec"]>) => ({
    claim: async () => claim,
    persistentVolume: async () => ({ ...local, spec: { ...local.spec, ...spec } }),
  });
  const mounting: Pod = {
    ...pod,
    spec: { containers: [{ name: "c", volumeMounts: [{ name: "data", mountPath: "/d" }] }] },
  };
  const mapping: Pod = {
    ...pod,
    spec: { containers: [{ name: "c", volumeDevices: [{ name: "data", devicePath: "/d" }] }] },
  };
  await t.resolves(resolveClaim(source({}), mounting, volume));
  await t.resolves(resolveClaim(source({ volumeMode: "Block" }), mapping, volume));
  await t.rejects(resolveClaim(source({ volumeMode: "Block" }), mounting, volume), {
    message: "volume data has volumeMode Block, but is specified in volumeMounts",
  });
  await t.rejects(resolveClaim(source({}), mapping, volume), {
    message: "volume data has volumeMode Filesystem, but is specified in volumeDevices",
  });
});
