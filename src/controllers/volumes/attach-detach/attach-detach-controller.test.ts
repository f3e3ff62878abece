import { createHash } from "node:crypto";
import t from "tap";
import { eventKind } from "../../../api/core/event/kind.ts";
import type { Event } from "../../../api/core/event/schema.ts";
import { nodeKind } from "../../../api/core/node/kind.ts";
import type { Node } from "../../../api/core/node/schema.ts";
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Kind } from "../../../api/kind.ts";
import { csiDriverKind } from "../../../api/storage/csi-driver/kind.ts";
import { volumeAttachmentKind } from "../../../api/storage/volume-attachment/kind.ts";
import type { VolumeAttachment } from "../../../api/storage/volume-attachment/schema.ts";
import { MetricRegistry } from "../../../std/metrics/metrics.ts";
import { formatMetrics } from "../../../std/metrics/text-format.ts";
import { type KindObjects, objectsOf, syncOnce, type Write } from "../../../testing/controllers/sync-once.ts";
import type { ControllerDeps } from "../../controller.ts";
import { runAttachDetachController } from "./attach-detach-controller.ts";

const DRIVER = "disk.example.com";
const UNIQUE = `kubernetes.io/csi/${DRIVER}^d1`;
const nameOn = (node: string): string => `csi-${createHash("sha256").update(`d1${DRIVER}${node}`).digest("hex")}`;

interface NodeOptions {
  readonly managed?: boolean;
  readonly ready?: boolean;
  readonly inUse?: boolean;
  readonly attached?: boolean;
  readonly taint?: string;
}

function node(name: string, { managed = true, ready = true, inUse, attached, taint }: NodeOptions = {}): Node {
  const annotation = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" };
  return {
    metadata: { name, annotations: managed ? annotation : {} },
    spec: taint === undefined ? {} : { taints: [{ key: taint, effect: "NoExecute" }] },
    status: {
      conditions: [{ type: "Ready", status: ready ? "True" : "Unknown" }],
      ...(inUse === true ? { volumesInUse: [UNIQUE] } : {}),
      ...(attached === true ? { volumesAttached: [{ name: UNIQUE, devicePath: "" }] } : {}),
    },
  };
}

function pod(
  name: string,
  nodeName: string,
  { namespace = "ns", phase = "Pending" as "Pending" | "Failed" } = {},
): Pod {
  const volumes = [{ name: "v", persistentVolumeClaim: { claimName: "data" } }];
  return {
    kind: "Pod",
    apiVersion: "v1",
    metadata: { name, namespace, uid: name },
    spec: { nodeName, containers: [], volumes },
    status: { phase },
  };
}

function volumes(
  modes: readonly ("ReadWriteOnce" | "ReadWriteMany")[] = ["ReadWriteOnce"],
  phase: "Bound" | "Pending" | "Lost" = "Bound",
): KindObjects[] {
  return [
    objectsOf(persistentVolumeClaimKind, {
      metadata: {
        name: "data",
        namespace: "ns",
        uid: "c",
        annotations: { "pv.kubernetes.io/bind-completed": "yes" },
      },
      spec: { volumeName: "pv" },
      status: { phase },
    }),
    objectsOf(persistentVolumeKind, {
      metadata: { name: "pv" },
      spec: {
        accessModes: modes,
        claimRef: { namespace: "ns", name: "data", uid: "c" },
        csi: { driver: DRIVER, volumeHandle: "d1" },
      },
    }),
  ];
}

function attachment(nodeName: string, status: Partial<VolumeAttachment["status"]> = {}, name = nameOn(nodeName)) {
  const found: VolumeAttachment = {
    metadata: { name, uid: name },
    spec: { attacher: DRIVER, nodeName, source: { persistentVolumeName: "pv" } },
    status: { attached: false, ...status },
  };
  return found;
}

const known = new Map(["a", "b"].map((name) => [nameOn(name), `attachment on ${name}`]));

function show({ verb, kind, object }: Write): string {
  if (kind === (eventKind as Kind)) {
    const { reason, message, involvedObject } = object as Event;
    return `${involvedObject.name} ${reason}: ${message}`;
  }
  const { name = "" } = object.metadata ?? {};
  const attached = kind === (nodeKind as Kind) ? ` ${JSON.stringify((object as Node).status?.volumesAttached)}` : "";
  return `${verb} ${known.get(name) ?? name}${attached}`;
}

interface Case {
  readonly title: string;
  readonly nodes: readonly Node[];
  readonly pods?: readonly Pod[];
  readonly attachments?: readonly VolumeAttachment[];
  readonly others?: readonly KindObjects[];
  readonly advanceMs?: number;
  readonly writes: readonly string[];
}

const ATTACHED = JSON.stringify([{ name: UNIQUE, devicePath: "" }]);
const multiAttach = (why: string): string => `p FailedAttachVolume: Multi-Attach error for volume "pv" ${why}`;

const cases: readonly Case[] = [
  {
    title: "a volume that a pod needs is attached to its node",
    nodes: [node("a")],
    pods: [pod("p", "a")],
    writes: ["create attachment on a"],
  },
  {
    title: "a node whose agent attaches volumes itself",
    nodes: [node("a", { managed: false })],
    pods: [pod("p", "a")],
    writes: [],
  },
  { title: "a pod that has ended", nodes: [node("a")], pods: [pod("p", "a", { phase: "Failed" })], writes: [] },
  {
    title: "a claim that is not bound",
    nodes: [node("a")],
    pods: [pod("p", "a")],
    others: volumes([], "Pending"),
    writes: [],
  },
  {
    title: "a claim that has lost its volume",
    nodes: [node("a")],
    pods: [pod("p", "a")],
    others: volumes([], "Lost"),
    writes: [],
  },
  {
    title: "a driver that attaches nothing",
    nodes: [node("a")],
    pods: [pod("p", "a")],
    others: [...volumes(), objectsOf(csiDriverKind, { metadata: { name: DRIVER }, spec: { attachRequired: false } })],
    writes: [],
  },
  {
    title: "an attached volume is reported in the node's status, once",
    nodes: [node("a")],
    pods: [pod("p", "a")],
    attachments: [attachment("a", { attached: true })],
    writes: [`patch a ${ATTACHED}`],
  },
  {
    title: "what the attacher reports is recorded",
    nodes: [node("a")],
    pods: [pod("p", "a")],
    attachments: [attachment("a", { attachError: { message: "no such disk" } })],
    writes: ['p FailedAttachVolume: AttachVolume.Attach failed for volume "pv" : no such disk'],
  },
  {
    title: "an attacher that does not answer",
    nodes: [node("a")],
    pods: [pod("p", "a")],
    attachments: [attachment("a")],
    advanceMs: 120_400,
    writes: [
      'p FailedAttachVolume: AttachVolume.Attach failed for volume "pv" : timed out waiting for external-attacher of ' +
        `${DRIVER} CSI driver to attach volume d1`,
    ],
  },
  {
    title: "a volume for one node that another node has, for a pod of the same namespace",
    nodes: [node("a"), node("b", { attached: true })],
    pods: [pod("p", "a"), pod("q", "b")],
    attachments: [attachment("b", { attached: true })],
    writes: [multiAttach("Volume is already used by pod(s) q")],
  },
  {
    title: "a volume for one node that another node still has",
    nodes: [node("a"), node("b", { attached: true, inUse: true })],
    pods: [pod("p", "a")],
    attachments: [attachment("b", { attached: true })],
    writes: [multiAttach("Volume is already exclusively attached to one node and can't be attached to another")],
  },
  {
    title: "a volume for several nodes",
    nodes: [node("a"), node("b", { attached: true })],
    pods: [pod("p", "a"), pod("q", "b")],
    attachments: [attachment("b", { attached: true })],
    others: volumes(["ReadWriteMany"]),
    writes: ["create attachment on a"],
  },
  {
    title: "a volume that no pod needs is detached, first in the node's status",
    nodes: [node("a", { attached: true })],
    attachments: [attachment("a", { attached: true })],
    writes: ["patch a null"],
  },
  {
    title: "a volume that no pod needs and the status does not list is detached",
    nodes: [node("a")],
    attachments: [attachment("a", { attached: true })],
    writes: ["delete attachment on a"],
  },
  {
    title: "a volume in use stays attached to a node that is ready",
    nodes: [node("a", { inUse: true, attached: true })],
    attachments: [attachment("a", { attached: true })],
    advanceMs: 400_000,
    writes: [],
  },
  {
    title: "a volume in use is detached after six minutes from a node that is not ready",
    nodes: [node("a", { inUse: true, ready: false })],
    attachments: [attachment("a", {})],
    advanceMs: 360_100,
    writes: ["delete attachment on a"],
  },
  {
    title: "a volume in use on a node that is out of service",
    nodes: [node("a", { inUse: true, taint: "node.kubernetes.io/out-of-service" })],
    attachments: [attachment("a", {})],
    writes: ["delete attachment on a"],
  },
  {
    title: "a node that is gone",
    nodes: [],
    attachments: [attachment("a", { attached: true })],
    writes: ["delete attachment on a"],
  },
  {
    title: "an attachment with a name that a user has chosen",
    nodes: [node("a")],
    attachments: [attachment("a", {}, "by-hand")],
    writes: [],
  },
];

for (const { title, nodes, pods = [], attachments = [], others = volumes(), advanceMs = 0, writes } of cases) {
  t.test(title, async (t) => {
    const objects = [
      ...others,
      objectsOf(volumeAttachmentKind, ...attachments),
      objectsOf(podKind, ...pods),
      objectsOf(nodeKind, ...nodes),
    ];
    const found = await syncOnce(runAttachDetachController, objectsOf(nodeKind), objects, { show, advanceMs });
    t.same(found, writes);
  });
}

t.test("volumes that are attached, and those that pods need, are counted", async (t) => {
  const registry = new MetricRegistry();
  const run = (deps: ControllerDeps): Promise<void> => runAttachDetachController({ ...deps, registry });
  await syncOnce(run, objectsOf(nodeKind), [
    ...volumes(),
    objectsOf(volumeAttachmentKind, attachment("a", { attached: true }), attachment("b", { attached: false })),
    objectsOf(podKind, pod("p", "a")),
    objectsOf(nodeKind, node("a"), node("b")),
  ]);
  const shown = formatMetrics([registry], "prometheus");
  for (const line of [
    'storage_count_attachable_volumes_in_use{node="a",volume_plugin="kubernetes.io/csi"} 1',
    'attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi",state="desired_state_of_world"} 1',
    'attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi",state="actual_state_of_world"} 1',
  ]) {
    t.ok(shown.split("\n").includes(line), `${line} in ${shown}`);
  }
});

t.test("detaching a volume that is in use is counted", async (t) => {
  const registry = new MetricRegistry();
  const run = (deps: ControllerDeps): Promise<void> => runAttachDetachController({ ...deps, registry });
  const found = node("a", { inUse: true, taint: "node.kubernetes.io/out-of-service" });
  await syncOnce(run, objectsOf(nodeKind), [
    ...volumes(),
    objectsOf(volumeAttachmentKind, attachment("a")),
    objectsOf(nodeKind, found),
  ]);
  const line = 'attach_detach_controller_attachdetach_controller_forced_detaches{reason="out-of-service"} 1';
  t.ok(formatMetrics([registry], "prometheus").split("\n").includes(line));
});
