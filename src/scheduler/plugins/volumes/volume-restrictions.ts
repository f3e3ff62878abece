import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodInfo } from "../../cache/pod-info.ts";
import type { Handle } from "../../framework/handle.ts";
import type { NodeFilter, Plugin } from "../../framework/plugin.ts";
import { unresolvable, unschedulable } from "../../framework/rejection.ts";
import { notFound, usesClaim } from "./pod-claims.ts";

const NAME = "VolumeRestrictions";
const DISK_CONFLICT = unschedulable(NAME, "node(s) had no available disk");
const CLAIM_IN_USE = unschedulable(
  NAME,
  "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
);

type Volume = NonNullable<NonNullable<Pod["spec"]>["volumes"]>[number];

/** Disks that only one pod of a node may write to, and claims that only one pod may use. */
export function createVolumeRestrictions({ cache, listers }: Pick<Handle, "cache" | "listers">): Plugin {
  return {
    name: NAME,
    points: ["preFilter", "filter"],
    events: [
      {
        resource: "AssignedPod",
        actions: ["Delete"],
        hint: (pod, { before }) => isSchedulableAfterPodDeletion(pod, before as Pod),
      },
      { resource: "Node", actions: ["Add"] },
      {
        resource: "PersistentVolumeClaim",
        actions: ["Add"],
        hint: (pod, { after }) => usesClaim(pod, after as PersistentVolumeClaim),
      },
    ],
    preFilter({ pod }) {
      const disks = (pod.pod.spec?.volumes ?? []).filter(isDisk);
      const exclusive: string[] = [];
      for (const { persistentVolumeClaim } of pod.pod.spec?.volumes ?? []) {
        if (persistentVolumeClaim === undefined) continue;
        const { claimName } = persistentVolumeClaim;
        const claim = listers.claims.get(claimName, pod.namespace);
        if (claim === undefined) {
          return { rejection: unresolvable(NAME, notFound("persistentvolumeclaim", claimName)) };
        }
        if (claim.spec?.accessModes?.includes("ReadWriteOncePod") === true) exclusive.push(claimName);
      }
      const users = exclusive.reduce((sum, name) => sum + (cache.claimUsers(pod.namespace, name) > 0 ? 1 : 0), 0);
      if (disks.length === 0 && users === 0) return "skip";
      return { filter: createFilter(pod, disks, exclusive, users) };
    },
  };
}

/** `users`: how many of the exclusive claims other pods use. */
function createFilter(pod: PodInfo, disks: readonly Volume[], exclusive: readonly string[], users: number): NodeFilter {
  let conflicts = users;
  const count = (other: PodInfo, difference: 1 | -1): void => {
    if (other.namespace !== pod.namespace) return;
    for (const { persistentVolumeClaim } of other.pod.spec?.volumes ?? []) {
      if (persistentVolumeClaim && exclusive.includes(persistentVolumeClaim.claimName)) conflicts += difference;
    }
  };
  return {
    filter(node) {
      if (disks.length > 0) {
        for (const { pod: other } of node.pods.values()) if (haveConflict(disks, other)) return DISK_CONFLICT;
      }
      return conflicts > 0 ? CLAIM_IN_USE : undefined;
    },
    addPod: (other) => count(other, 1),
    removePod: (other) => count(other, -1),
    clone: () => createFilter(pod, disks, exclusive, conflicts),
  };
}

function isSchedulableAfterPodDeletion(pod: Pod, deleted: Pod): boolean {
  if (deleted.metadata?.namespace !== pod.metadata?.namespace) return false;
  if (haveConflict((pod.spec?.volumes ?? []).filter(isDisk), deleted)) return true;
  const claims = (pod.spec?.volumes ?? []).map(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName);
  return (deleted.spec?.volumes ?? []).some(
    ({ persistentVolumeClaim }) => persistentVolumeClaim && claims.includes(persistentVolumeClaim.claimName),
  );
}

function isDisk({ gcePersistentDisk, awsElasticBlockStore, rbd, iscsi }: Volume): boolean {
  return [gcePersistentDisk, awsElasticBlockStore, rbd, iscsi].some((source) => source !== undefined);
}

function haveConflict(disks: readonly Volume[], pod: Pod): boolean {
  return disks.some((disk) => (pod.spec?.volumes ?? []).some((other) => areSame(disk, other)));
}

/** The same disk, which at least one of the two writes to. */
function areSame(a: Volume, b: Volume): boolean {
  const writes = (x: { readonly readOnly?: boolean | undefined }, y: typeof x): boolean => !(x.readOnly && y.readOnly);
  if (a.gcePersistentDisk && b.gcePersistentDisk && a.gcePersistentDisk.pdName === b.gcePersistentDisk.pdName) {
    if (writes(a.gcePersistentDisk, b.gcePersistentDisk)) return true;
  }
  if (a.awsElasticBlockStore && b.awsElasticBlockStore) {
    if (a.awsElasticBlockStore.volumeID === b.awsElasticBlockStore.volumeID) return true;
  }
  if (a.iscsi && b.iscsi && a.iscsi.iqn === b.iscsi.iqn && writes(a.iscsi, b.iscsi)) return true;
  if (a.rbd && b.rbd && writes(a.rbd, b.rbd)) {
    const { monitors, pool, image } = a.rbd;
    const other = b.rbd;
    return monitors.some((monitor) => other.monitors.includes(monitor)) && pool === other.pool && image === other.image;
  }
  return false;
}
