import t from "tap";
import { eventKind } from "../../../api/core/event/kind.ts";
import type { Event } from "../../../api/core/event/schema.ts";
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import type { PersistentVolume, PersistentVolumeSpec } from "../../../api/core/persistent-volume/schema.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Kind } from "../../../api/kind.ts";
import { storageClassKind } from "../../../api/storage/storage-class/kind.ts";
import type { StorageClass } from "../../../api/storage/storage-class/schema.ts";
import { type KindObjects, objectsOf, syncOnce, type Write } from "../../../testing/controllers/sync-once.ts";
import { runPersistentVolumeBinder } from "./persistent-volume-binder.ts";
import { explainMismatch, findBestMatch } from "./volume-matching.ts";

type ClaimSpec = NonNullable<PersistentVolumeClaim["spec"]>;

const BOUND = { "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes" };
const BY_CONTROLLER = { "pv.kubernetes.io/bound-by-controller": "yes" };

interface ClaimOptions {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly phase?: "Pending" | "Bound" | "Lost";
  readonly uid?: string;
}

function claim(spec: Partial<ClaimSpec> = {}, { annotations, phase = "Pending", uid = "c" }: ClaimOptions = {}) {
  const found: PersistentVolumeClaim = {
    kind: "PersistentVolumeClaim",
    apiVersion: "v1",
    metadata: { name: "claim", namespace: "ns", uid, annotations },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
      storageClassName: "fast",
      volumeMode: "Filesystem",
      ...spec,
    },
    status: { phase },
  };
  return found;
}

type Phase = NonNullable<PersistentVolume["status"]>["phase"];

function volume(name: string, spec: Partial<PersistentVolumeSpec> = {}, phase: Phase = "Available", annotations = {}) {
  const found: PersistentVolume = {
    kind: "PersistentVolume",
    apiVersion: "v1",
    metadata: { name, uid: name, annotations, labels: { disk: name } },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "1Gi" },
      storageClassName: "fast",
      volumeMode: "Filesystem",
      persistentVolumeReclaimPolicy: "Retain",
      csi: { driver: "disk.example.com", volumeHandle: name },
      ...spec,
    },
    status: { phase },
  };
  return found;
}

const reference = (uid?: string) => ({ kind: "PersistentVolumeClaim", namespace: "ns", name: "claim", uid });

function storageClass(name: string, provisioner: string, options: Partial<StorageClass> = {}): StorageClass {
  return { metadata: { name }, provisioner, volumeBindingMode: "Immediate", ...options };
}

/** `Reason: message` of an event; the phase of a status; the annotations of an update. */
function show({ verb, kind, object }: Write): string {
  if (kind === (eventKind as Kind)) {
    const { type, reason, message } = object as Event;
    return `${type} ${reason}: ${message}`;
  }
  const { metadata, status, spec } = object as PersistentVolume & PersistentVolumeClaim;
  const what = `${verb} ${metadata?.name}`;
  if (verb === "status")
    return [what, status?.phase, status?.currentVolumeAttributesClassName]
      .filter((part) => part !== undefined)
      .join(" ");
  if (verb === "delete") return what;
  const bound = spec?.claimRef === undefined ? (spec?.volumeName ?? "") : `of ${spec.claimRef.uid ?? "no uid"}`;
  return `${what} ${bound} ${Object.keys(metadata?.annotations ?? {})
    .map((key) => key.replace(/.*\//, ""))
    .sort()}`;
}

interface Case {
  readonly title: string;
  readonly claim?: PersistentVolumeClaim;
  readonly volumes?: readonly PersistentVolume[];
  /** Instead of the claim. */
  readonly synced?: PersistentVolume;
  readonly others?: readonly KindObjects[];
  readonly writes: readonly string[];
}

const WAITING = "Normal WaitForFirstConsumer: waiting for first consumer to be created before binding";
const external = (name: string): string =>
  `Normal ExternalProvisioning: Waiting for a volume to be created either by the external provisioner '${name}' or ` +
  "manually by the system administrator. If volume creation is delayed, please verify that the provisioner is " +
  "running and correctly registered.";
const late = storageClass("fast", "disk.example.com", { volumeBindingMode: "WaitForFirstConsumer" });
const SELECTED = { "volume.kubernetes.io/selected-node": "a" };
const MARKED = "claim  storage-provisioner,storage-provisioner";

const cases: readonly Case[] = [
  {
    title: "a claim and a volume are bound in four writes",
    claim: claim(),
    volumes: [volume("a")],
    writes: [
      "update a of c bound-by-controller",
      "status a Bound",
      "update claim a bind-completed,bound-by-controller",
      "status claim Bound",
    ],
  },
  {
    title: "an interrupted binding is continued",
    claim: claim(),
    volumes: [volume("a", { claimRef: reference("c") }, "Bound", BY_CONTROLLER)],
    writes: ["update claim a bind-completed,bound-by-controller", "status claim Bound"],
  },
  {
    title: "a volume that is reserved by name stays so",
    claim: claim(),
    volumes: [volume("a", { claimRef: reference() })],
    writes: [
      "update a of c ",
      "status a Bound",
      "update claim a bind-completed,bound-by-controller",
      "status claim Bound",
    ],
  },
  {
    title: "a claim that names a volume of another class",
    claim: claim({ volumeName: "a" }),
    volumes: [volume("a", { storageClassName: "slow" })],
    writes: ['Warning VolumeMismatch: Cannot bind to requested volume "a": storageClassName does not match'],
  },
  {
    title: "a claim that was bound to a volume which another one has",
    claim: claim({ volumeName: "a" }, { annotations: BOUND, phase: "Bound" }),
    volumes: [volume("a", { claimRef: { ...reference("other"), name: "other" } }, "Bound")],
    writes: [
      "status claim Lost",
      "Warning ClaimMisbound: Two claims are bound to the same volume, this one is bound incorrectly",
    ],
  },
  {
    title: "a claim without the name of its volume",
    claim: claim({}, { annotations: BOUND, phase: "Bound" }),
    writes: [
      "status claim Lost",
      "Warning ClaimLost: Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
    ],
  },
  {
    title: "the volume of a bound claim has lost its reference",
    claim: claim({ volumeName: "a" }, { annotations: BOUND, phase: "Bound" }),
    volumes: [volume("a")],
    writes: ["update a of c bound-by-controller", "status a Bound", "status claim Bound"],
  },
  {
    title: "a claim of an external provisioner",
    claim: claim(),
    others: [objectsOf(storageClassKind, storageClass("fast", "disk.example.com"))],
    writes: [`update ${MARKED}`, external("disk.example.com")],
  },
  {
    title: "a claim of an in-tree plugin that has moved to CSI",
    claim: claim(),
    others: [objectsOf(storageClassKind, storageClass("fast", "kubernetes.io/aws-ebs"))],
    writes: [`update ${MARKED}`, external("ebs.csi.aws.com")],
  },
  {
    title: "a claim of a class without provisioner",
    claim: claim(),
    others: [objectsOf(storageClassKind, storageClass("fast", "kubernetes.io/no-provisioner"))],
    writes: ["Warning ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner"],
  },
  {
    title: "a claim that waits for its first pod, with a free volume",
    claim: claim(),
    volumes: [volume("a")],
    others: [objectsOf(storageClassKind, late)],
    writes: [WAITING],
  },
  {
    title: "a claim whose pods wait for the scheduler",
    claim: claim(),
    others: [
      objectsOf(storageClassKind, late),
      objectsOf(
        podKind,
        ...["p", "q"].map((name) => ({
          metadata: { name, namespace: "ns" },
          spec: { containers: [], volumes: [{ name: "v", persistentVolumeClaim: { claimName: "claim" } }] },
        })),
      ),
    ],
    writes: ["Normal WaitForPodScheduled: waiting for pods p,q to be scheduled"],
  },
  {
    title: "a claim for which the scheduler has selected a node",
    claim: claim({}, { annotations: SELECTED }),
    volumes: [volume("a")],
    others: [objectsOf(storageClassKind, late)],
    writes: ["update claim  selected-node,storage-provisioner,storage-provisioner", external("disk.example.com")],
  },
  {
    title: "a claim that the scheduler has given a volume",
    claim: claim(),
    volumes: [volume("a", { claimRef: reference("c") }, "Available", BY_CONTROLLER)],
    others: [objectsOf(storageClassKind, late)],
    writes: ["status a Bound", "update claim a bind-completed,bound-by-controller", "status claim Bound"],
  },
  {
    title: "a claim that this controller bound to the volume of another claim",
    claim: claim({ volumeName: "a" }, { annotations: BY_CONTROLLER }),
    volumes: [volume("a", { claimRef: reference("other") }, "Bound")],
    writes: ['Warning FailedBinding: volume "a" already bound to a different claim.'],
  },
  {
    title: "a claim gets a volume of its own class of attributes only, which its status shows",
    claim: claim({ volumeAttributesClassName: "gold" }),
    volumes: [
      volume("a", {}, "Available"),
      volume("b", { volumeAttributesClassName: "silver" }, "Available"),
      volume("c", { volumeAttributesClassName: "gold" }, "Available"),
    ],
    writes: [
      "update c of c bound-by-controller",
      "status c Bound",
      "update claim c bind-completed,bound-by-controller",
      "status claim Bound gold",
    ],
  },
  {
    title: "a claim without a class gets the default class",
    claim: claim({ storageClassName: undefined }),
    others: [
      objectsOf(
        storageClassKind,
        storageClass("old", "x", {
          metadata: {
            name: "old",
            annotations: { "storageclass.kubernetes.io/is-default-class": "true" },
            creationTimestamp: "2026-01-01T00:00:00Z",
          },
        }),
      ),
    ],
    writes: ["update claim  "],
  },
  {
    title: "a claim with the empty class does not get the default class",
    claim: claim({ storageClassName: "" }),
    writes: ["Normal FailedBinding: no persistent volumes available for this claim and no storage class is set"],
  },
  {
    title: "a volume whose claim is bound to another one is unbound",
    synced: volume("a", { claimRef: reference("c") }, "Bound", BY_CONTROLLER),
    others: [objectsOf(persistentVolumeClaimKind, claim({ volumeName: "b" }, { annotations: BOUND, phase: "Lost" }))],
    writes: ["update a  ", "status a Available"],
  },
  {
    title: "a volume that its user has reserved keeps the name of the claim",
    synced: volume("a", { claimRef: reference("c") }, "Bound"),
    others: [objectsOf(persistentVolumeClaimKind, claim({ volumeName: "b" }, { annotations: BOUND, phase: "Lost" }))],
    writes: ["update a of no uid ", "status a Available"],
  },
  {
    title: "a provisioned volume whose claim is bound to another one is released",
    synced: volume("a", { claimRef: reference("c"), persistentVolumeReclaimPolicy: "Delete" }, "Bound", {
      "pv.kubernetes.io/provisioned-by": "disk.example.com",
    }),
    others: [objectsOf(persistentVolumeClaimKind, claim({ volumeName: "b" }, { annotations: BOUND, phase: "Lost" }))],
    writes: ["status a Released"],
  },
  {
    title: "a volume of another mode than its claim",
    synced: volume("a", { claimRef: reference("c"), volumeMode: "Block" }, "Available"),
    others: [objectsOf(persistentVolumeClaimKind, claim({}, { phase: "Lost", annotations: BOUND }))],
    writes: [
      'Warning VolumeMismatch: Cannot bind PersistentVolume to requested PersistentVolumeClaim "claim" ' +
        "due to incompatible volumeMode.",
      'Warning VolumeMismatch: Cannot bind PersistentVolume "a" to requested PersistentVolumeClaim ' +
        "due to incompatible volumeMode.",
    ],
  },
  {
    title: "the claim was deleted and created again: the volume is released",
    synced: volume("a", { claimRef: reference("before") }, "Bound", BY_CONTROLLER),
    others: [objectsOf(persistentVolumeClaimKind, claim({ volumeName: "b" }, { annotations: BOUND, phase: "Lost" }))],
    writes: ["status a Released"],
  },
  {
    title: "a volume of a CSI driver without a provisioner stays released: an administrator deletes it",
    synced: volume("a", { claimRef: reference("gone"), persistentVolumeReclaimPolicy: "Delete" }, "Released"),
    writes: [],
  },
  {
    title: "a local volume cannot be deleted",
    synced: volume(
      "a",
      { claimRef: reference("gone"), persistentVolumeReclaimPolicy: "Delete", csi: undefined, local: { path: "/x" } },
      "Released",
    ),
    writes: [
      "status a Failed",
      "Warning VolumeFailedDelete: error getting deleter volume plugin for " + 'volume "a": no volume plugin matched',
    ],
  },
  {
    title: "an NFS volume cannot be deleted",
    synced: volume(
      "a",
      {
        claimRef: reference("gone"),
        persistentVolumeReclaimPolicy: "Delete",
        csi: undefined,
        nfs: { server: "s", path: "/x" },
      },
      "Released",
    ),
    writes: [
      "status a Failed",
      'Warning VolumeFailedDelete: error getting deleter volume plugin for volume "a": ' +
        "no deletable volume plugin matched",
    ],
  },
  {
    title: "the object of a directory below /tmp is deleted",
    synced: volume(
      "a",
      {
        claimRef: reference("gone"),
        persistentVolumeReclaimPolicy: "Delete",
        csi: undefined,
        hostPath: { path: "/tmp/a", type: "" },
      },
      "Released",
    ),
    writes: ["delete a"],
  },
  {
    title: "a volume of an in-tree plugin is marked for its CSI driver",
    synced: volume("a", { claimRef: reference("gone"), persistentVolumeReclaimPolicy: "Delete" }, "Released", {
      "pv.kubernetes.io/provisioned-by": "kubernetes.io/gce-pd",
    }),
    writes: ["update a of gone migrated-to,provisioned-by"],
  },
];

for (const { title, claim: synced, volumes = [], synced: syncedVolume, others = [], writes } of cases) {
  t.test(title, async (t) => {
    const owner =
      synced === undefined
        ? objectsOf(persistentVolumeKind, syncedVolume!)
        : objectsOf(persistentVolumeClaimKind, synced);
    const objects = [...others, ...(synced === undefined ? [] : [objectsOf(persistentVolumeKind, ...volumes)])];
    const found = await syncOnce(runPersistentVolumeBinder, owner, objects, { show });
    const isOfSynced = (write: string): boolean =>
      synced === undefined || !/^status a (Available|Released)/.test(write);
    t.same(found.filter(isOfSynced), writes);
  });
}

t.test("volumes that an in-tree plugin provisioned and will delete have the finalizer of the binder", async (t) => {
  const own = "kubernetes.io/pv-controller";
  const external = "external-provisioner.volume.kubernetes.io/finalizer";
  const cases = [
    ["kubernetes.io/host-path", "Delete", [], ["update a kubernetes.io/pv-controller"]],
    ["kubernetes.io/host-path", "Delete", [own, external], ["update a kubernetes.io/pv-controller"]],
    ["kubernetes.io/host-path", "Delete", [own], []],
    ["kubernetes.io/host-path", "Retain", [own], ["update a "]],
    ["disk.example.com", "Delete", [external], []],
    ["kubernetes.io/gce-pd", "Delete", [own, external], [`update a ${external}`]],
  ] as const;
  for (const [provisioner, persistentVolumeReclaimPolicy, finalizers, writes] of cases) {
    const found = volume("a", { persistentVolumeReclaimPolicy }, "Available", {
      "pv.kubernetes.io/provisioned-by": provisioner,
    });
    const owner = objectsOf(persistentVolumeKind, { ...found, metadata: { ...found.metadata, finalizers } });
    const shown = await syncOnce(runPersistentVolumeBinder, owner, [], {
      show: ({ verb, object }) => `${verb} ${object.metadata?.name} ${object.metadata?.finalizers}`,
    });
    t.same(shown, writes, `${provisioner} ${persistentVolumeReclaimPolicy} ${finalizers}`);
  }
});

t.test("the binder removes its finalizer before it deletes the volume", async (t) => {
  const spec = { persistentVolumeReclaimPolicy: "Delete" as const, csi: undefined, claimRef: reference("gone") };
  const hostPath = { path: "/tmp/a", type: "" as const };
  const found = volume("a", { ...spec, hostPath }, "Released", {
    "pv.kubernetes.io/provisioned-by": "kubernetes.io/host-path",
  });
  const finalizers = ["kubernetes.io/pv-protection", "kubernetes.io/pv-controller"];
  const owner = objectsOf(persistentVolumeKind, { ...found, metadata: { ...found.metadata, finalizers } });
  const shown = await syncOnce(runPersistentVolumeBinder, owner, [], {
    show: ({ verb, object }) => `${verb} ${object.metadata?.name} ${object.metadata?.finalizers ?? ""}`,
  });
  t.same(shown, ["update a kubernetes.io/pv-protection", "delete a "]);
});

t.test("without dynamic provisioning no volume is requested of a provisioner", async (t) => {
  const owner = objectsOf(persistentVolumeClaimKind, claim());
  const others = [objectsOf(storageClassKind, storageClass("fast", "disk.example.com"))];
  const run = (provisionsVolumes: boolean) =>
    syncOnce(
      (deps) => runPersistentVolumeBinder({ ...deps, options: { ...deps.options, provisionsVolumes } }),
      owner,
      others,
      { show },
    );
  t.same(await run(true), [`update ${MARKED}`, external("disk.example.com")]);
  t.same(await run(false), []);
});

t.test("a failed write is tried again, with the writes after it", async (t) => {
  let failures = 0;
  const fail = (write: string): void => {
    if (write.startsWith("status a Bound") && failures++ === 0) throw new Error("the server is away");
  };
  const objects = [objectsOf(persistentVolumeKind, volume("a"))];
  const owner = objectsOf(persistentVolumeClaimKind, claim());
  const writes = await syncOnce(runPersistentVolumeBinder, owner, objects, { show, fail, advanceMs: 1_000 });
  t.equal(writes.filter((write) => write === "status a Bound").length, 2);
  t.same(writes.slice(-2), ["update claim a bind-completed,bound-by-controller", "status claim Bound"]);
});

t.test("the volume with the fewest modes, the smallest, and the first by name is chosen", async (t) => {
  const find = (volumes: readonly PersistentVolume[], wanted = claim(), delays = false): string | undefined =>
    findBestMatch(wanted, volumes, delays)?.metadata?.name;
  const size = (name: string, storage: string) => volume(name, { capacity: { storage } });
  t.equal(find([size("c", "5Gi"), size("b", "2Gi"), size("a", "2Gi"), size("d", "1000Mi")]), "a");
  const shared = volume("shared", { accessModes: ["ReadWriteOnce", "ReadOnlyMany"] });
  t.equal(find([shared, size("large", "9Gi")]), "large");
  t.equal(find([shared], claim({ accessModes: ["ReadOnlyMany"] })), "shared");
  t.equal(find([volume("a"), volume("z", { claimRef: reference() })]), "z", "reserved by name");
  t.equal(find([volume("z", { claimRef: reference("other") })]), undefined, "of an earlier claim of this name");
  t.equal(find([volume("a")], claim(), true), undefined);
  t.equal(find([volume("z", { claimRef: reference("c") })], claim(), true), "z");
  t.equal(find([volume("a", {}, "Released")]), undefined);
  t.equal(find([volume("a"), volume("b")], claim({ selector: { matchLabels: { disk: "b" } } })), "b");
  t.equal(find([{ ...volume("a"), metadata: { name: "a", deletionTimestamp: "2026-01-01T00:00:00Z" } }]), undefined);
  t.equal(find([volume("a", { storageClassName: undefined })], claim({ storageClassName: "" })), "a");
});

t.test("the mismatch of a volume and a claim that names it is explained in Kubernetes' words", async (t) => {
  t.equal(
    explainMismatch(volume("a"), claim({ resources: { requests: { storage: "2Gi" } } })),
    "requested PV is too small",
  );
  t.equal(explainMismatch(volume("a"), claim({ volumeMode: "Block" })), "incompatible volumeMode");
  t.equal(explainMismatch(volume("a"), claim({ accessModes: ["ReadWriteMany"] })), "incompatible accessMode");
  const terminating = { ...volume("a"), metadata: { name: "a", deletionTimestamp: "2026-01-01T00:00:00Z" } };
  t.equal(explainMismatch(terminating, claim()), 'the volume is marked for deletion "a"');
  t.equal(explainMismatch(volume("a"), claim()), undefined);
});
