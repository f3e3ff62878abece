import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { StorageClass } from "../../../api/storage/storage-class/schema.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import type { PodInfo } from "../../cache/pod-info.ts";
import type { Listers } from "../../framework/handle.ts";
import type { Plugin } from "../../framework/plugin.ts";
import { type Rejection, unresolvable } from "../../framework/rejection.ts";
import { classOfClaim, notFound, usesClaim, waitsForConsumer } from "./pod-claims.ts";

const NAME = "VolumeZone";
const CONFLICT = unresolvable(NAME, "node(s) had no available volume zone");

/** Label keys, and the keys that replaced them. */
const TOPOLOGY_KEYS: ReadonlyMap<string, string> = new Map([
  ["failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"],
  ["failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"],
  ["topology.kubernetes.io/zone", "topology.kubernetes.io/zone"],
  ["topology.kubernetes.io/region", "topology.kubernetes.io/region"],
]);

interface VolumeTopology {
  readonly key: string;
  readonly values: ReadonlySet<string>;
}

/** A node in a zone gets only pods whose bound volumes have no zone or that one. */
export function createVolumeZone(listers: Pick<Listers, "claims" | "volumes" | "storageClasses">): Plugin {
  return {
    name: NAME,
    points: ["preFilter", "filter"],
    events: [
      {
        resource: "StorageClass",
        actions: ["Add"],
        hint: (_pod, { after }) => waitsForConsumer((after as StorageClass).volumeBindingMode),
      },
      { resource: "Node", actions: ["Add", "UpdateNodeLabel"] },
      {
        resource: "PersistentVolumeClaim",
        actions: ["Add", "Update"],
        hint: (pod, { after }) => usesClaim(pod, after as PersistentVolumeClaim),
      },
      {
        resource: "PersistentVolume",
        actions: ["Add", "Update"],
        hint: (_pod, { before, after }) =>
          before === undefined || !deepEqual(zonesOf(before as PersistentVolume), zonesOf(after as PersistentVolume)),
      },
    ],
    preFilter({ pod }) {
      const topologies = topologiesOf(pod, listers);
      if ("code" in topologies) return { rejection: topologies };
      if (topologies.length === 0) return "skip";
      return {
        filter: {
          filter({ labels }) {
            if (![...TOPOLOGY_KEYS.keys()].some((key) => getMember(labels, key) !== undefined)) return undefined;
            const fits = topologies.every(({ key, values }) => {
              const value = getMember(labels, key) ?? getMember(labels, TOPOLOGY_KEYS.get(key) ?? key);
              return value !== undefined && values.has(value);
            });
            return fits ? undefined : CONFLICT;
          },
        },
      };
    },
  };
}

function topologiesOf(
  { pod, namespace }: PodInfo,
  { claims, volumes, storageClasses }: Pick<Listers, "claims" | "volumes" | "storageClasses">,
): readonly VolumeTopology[] | Rejection {
  const topologies: VolumeTopology[] = [];
  for (const { persistentVolumeClaim } of pod.spec?.volumes ?? []) {
    if (persistentVolumeClaim === undefined) continue;
    const { claimName } = persistentVolumeClaim;
    const claim = claims.get(claimName, namespace);
    if (claim === undefined) return unresolvable(NAME, notFound("persistentvolumeclaim", claimName));
    const volumeName = claim.spec?.volumeName ?? "";
    if (volumeName === "") {
      const className = classOfClaim(claim);
      if (className === "") return unresolvable(NAME, "PersistentVolumeClaim had no pv name and storageClass name");
      const storageClass = storageClasses.get(className);
      if (storageClass === undefined) {
        return unresolvable(NAME, `storageclass.storage.k8s.io "${className}" not found`);
      }
      if (!waitsForConsumer(storageClass.volumeBindingMode)) {
        return unresolvable(NAME, "PersistentVolume had no name");
      }
      continue;
    }
    const volume = volumes.get(volumeName);
    if (volume === undefined) return unresolvable(NAME, notFound("persistentvolume", volumeName));
    topologies.push(...labelTopologies(volume));
  }
  return topologies;
}

/** A label may have several zones: `a__b`. */
function labelTopologies({ metadata }: PersistentVolume): readonly VolumeTopology[] {
  return [...TOPOLOGY_KEYS.keys()].flatMap((key) => {
    const value = getMember(metadata?.labels, key);
    const values = value?.split("__").map((zone) => zone.trim());
    return values === undefined || values.includes("") ? [] : [{ key, values: new Set(values) }];
  });
}

function zonesOf(volume: PersistentVolume): readonly unknown[] {
  return labelTopologies(volume).map(({ key, values }) => [key, [...values].sort()]);
}
