/** A Flex volume, from a persistent volume or inline in a pod. */
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import { podNamespace } from "../../pods/pod-fields.ts";

export interface FlexVolume {
  /** The persistent volume's name, or that of the pod's volume. */
  readonly specName: string;
  /** `vendor/driver` */
  readonly driver: string;
  readonly fsType: string;
  readonly readOnly: boolean;
  readonly options: Readonly<Record<string, string>>;
  readonly secret: { readonly namespace: string; readonly name: string } | undefined;
}

/** Undefined when the volume is no Flex volume. */
export function toFlexVolume(pod: Pod, volume: Volume, bound: PersistentVolume | undefined): FlexVolume | undefined {
  const own = volume.flexVolume;
  const claimed = bound?.spec?.flexVolume;
  const source = bound === undefined ? own : claimed;
  if (source === undefined) return undefined;
  const secret = source.secretRef?.name;
  const namespace = claimed?.secretRef?.namespace || podNamespace(pod);
  return {
    specName: bound?.metadata?.name ?? volume.name,
    driver: source.driver,
    fsType: source.fsType ?? "",
    readOnly: source.readOnly === true || volume.persistentVolumeClaim?.readOnly === true,
    options: source.options ?? {},
    secret: secret === undefined ? undefined : { namespace, name: secret },
  };
}
