import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { CSINode } from "../../../api/storage/csi-node/schema.ts";
import type { VolumeAttachment } from "../../../api/storage/volume-attachment/schema.ts";
import type { NodeInfo } from "../../cache/node-info.ts";
import { isAssigned } from "../../cache/pod-info.ts";
import type { Listers } from "../../framework/handle.ts";
import type { Plugin } from "../../framework/plugin.ts";
import { type Rejection, unresolvable, unschedulable } from "../../framework/rejection.ts";
import { claimNamesOf, classOfClaim, notFound, usesClaim } from "./pod-claims.ts";

const NAME = "NodeVolumeLimits";
const EXCEEDED = unschedulable(NAME, "node(s) exceed max volume count");

/** CSI drivers by volume. */
type Volumes = Map<string, string>;

/** A node attaches only as many volumes of a CSI driver as the driver allows. */
export function createNodeVolumeLimits(listers: Listers): Plugin {
  return {
    name: NAME,
    points: ["preFilter", "filter"],
    events: [
      {
        resource: "CSINode",
        actions: ["Add", "Update"],
        hint: (_pod, { before, after }) => before === undefined || allowsMore(before as CSINode, after as CSINode),
      },
      {
        resource: "AssignedPod",
        actions: ["Delete"],
        hint: (_pod, { before }) => freesVolume(before as Pod),
      },
      {
        resource: "PersistentVolumeClaim",
        actions: ["Add"],
        hint: (pod, { after }) => usesClaim(pod, after as PersistentVolumeClaim),
      },
      {
        resource: "VolumeAttachment",
        actions: ["Delete"],
        hint: (pod) =>
          (pod.spec?.volumes ?? []).some(({ persistentVolumeClaim }) => persistentVolumeClaim !== undefined),
      },
    ],
    preFilter({ pod }) {
      if (claimNamesOf(pod.pod).length === 0) return "skip";
      return { filter: { filter: (node) => checkLimits(pod.pod, node, listers) } };
    },
  };
}

function freesVolume(deleted: Pod): boolean {
  const isPlaced = isAssigned(deleted) || Boolean(deleted.status?.nominatedNodeName);
  return isPlaced && claimNamesOf(deleted).length > 0;
}

/** A driver without a limit counts as one that allows nothing. */
function allowsMore(before: CSINode, after: CSINode): boolean {
  const old = new Map((before.spec?.drivers ?? []).map(({ name, allocatable }) => [name, allocatable?.count ?? 0]));
  return (after.spec?.drivers ?? []).some(({ name, allocatable }) => (allocatable?.count ?? 0) > (old.get(name) ?? 0));
}

function checkLimits(pod: Pod, node: NodeInfo, listers: Listers): Rejection | undefined {
  const added: Volumes = new Map();
  const missing = collectVolumes(pod, listers, added);
  if (missing !== undefined) return unresolvable(NAME, notFound("persistentvolumeclaim", missing));
  if (added.size === 0) return undefined;
  const limits = limitsOf(node.name, listers);
  if (limits.size === 0) return undefined;
  const attached: Volumes = new Map();
  for (const { pod: other } of node.pods.values()) collectVolumes(other, listers, attached);
  for (const attachment of listers.attachments.list()) {
    if (attachment.spec?.nodeName === node.name) addAttached(attachment, listers, attached);
  }
  const counts = new Map<string, number>();
  const count = (driver: string): number => {
    const next = (counts.get(driver) ?? 0) + 1;
    counts.set(driver, next);
    return next;
  };
  for (const driver of attached.values()) count(driver);
  for (const [volume, driver] of added) {
    if (!attached.has(volume) && count(driver) > (limits.get(driver) ?? Number.POSITIVE_INFINITY)) return EXCEEDED;
  }
  return undefined;
}

/** Returns the name of the first claim that does not exist. */
function collectVolumes(pod: Pod, listers: Listers, found: Volumes): string | undefined {
  let missing: string | undefined;
  for (const { name } of claimNamesOf(pod)) {
    const claim = listers.claims.get(name, pod.metadata?.namespace);
    if (claim === undefined) missing ??= name;
    else addVolume(claim, listers, found);
  }
  return missing;
}

/** The volume of a claim that has none yet will be of the provisioner of its class. */
function addVolume(claim: PersistentVolumeClaim, listers: Listers, found: Volumes): void {
  const volume = listers.volumes.get(claim.spec?.volumeName ?? "");
  if (volume !== undefined) {
    const csi = volume.spec?.csi;
    if (csi !== undefined) found.set(`${csi.driver}/${csi.volumeHandle}`, csi.driver);
    return;
  }
  const driver = listers.storageClasses.get(classOfClaim(claim))?.provisioner;
  const { namespace, name } = claim.metadata ?? {};
  if (driver !== undefined) found.set(`${driver}/claim ${namespace}/${name}`, driver);
}

/** Volumes that are attached without a pod on the node. */
function addAttached({ spec }: VolumeAttachment, listers: Listers, found: Volumes): void {
  const name = spec?.source.persistentVolumeName;
  const csi = name === undefined ? spec?.source.inlineVolumeSpec?.csi : listers.volumes.get(name)?.spec?.csi;
  if (csi !== undefined) found.set(`${csi.driver}/${csi.volumeHandle}`, csi.driver);
}

function limitsOf(nodeName: string, listers: Listers): ReadonlyMap<string, number> {
  const drivers = listers.csiNodes.get(nodeName)?.spec?.drivers ?? [];
  return new Map(
    drivers.flatMap(({ name, allocatable }) =>
      allocatable?.count === undefined ? [] : [[name, allocatable.count] as const],
    ),
  );
}
