/** Persistent volumes that one pod at a time may use: those whose only access mode is ReadWriteOncePod. */
import type { PersistentVolume } from "../../api/core/persistent-volume/schema.ts";
import { toUniqueName } from "./csi/volume.ts";
import { OperationError } from "./operation-error.ts";

export class SinglePodVolumes {
  /** The pods that have a volume or set it up, by the volume's name in Kubernetes' node status. */
  readonly #users = new Map<string, Set<string>>();

  /** The pod has the volume, whatever others do. */
  add(uid: string, { spec, metadata }: PersistentVolume): void {
    const name = nameOf({ spec, metadata });
    if (name === undefined) return;
    const users = this.#users.get(name) ?? new Set<string>();
    this.#users.set(name, users.add(uid));
  }

  /** Throws Kubernetes' error while another pod has the volume. */
  check(uid: string, volume: PersistentVolume): void {
    const { accessModes = [], volumeMode } = volume.spec ?? {};
    if (accessModes.join() !== "ReadWriteOncePod") return;
    const users = this.#users.get(nameOf(volume) ?? "");
    if (users === undefined || [...users].every((each) => each === uid)) return;
    const [operation, event] =
      volumeMode === "Block"
        ? (["MapVolume.SetUpDevice", "FailedMapVolume"] as const)
        : (["MountVolume.SetUp", "FailedMount"] as const);
    const why = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";
    throw new OperationError(operation, volume.metadata?.name ?? "", event, new Error(why));
  }

  remove(uid: string, volume: PersistentVolume): void {
    this.#removeFrom(nameOf(volume) ?? "", uid);
  }

  /** The pod has no volumes any more. */
  removePod(uid: string): void {
    for (const name of [...this.#users.keys()]) this.#removeFrom(name, uid);
  }

  #removeFrom(name: string, uid: string): void {
    const users = this.#users.get(name);
    users?.delete(uid);
    if (users?.size === 0) this.#users.delete(name);
  }
}

/** Undefined for volumes whose pods Kubernetes does not compare, such as those of host paths. */
function nameOf({ spec, metadata }: Pick<PersistentVolume, "spec" | "metadata">): string | undefined {
  if (spec?.csi !== undefined) return toUniqueName({ driver: spec.csi.driver, handle: spec.csi.volumeHandle });
  return spec?.local === undefined ? undefined : `kubernetes.io/local-volume/${metadata?.name}`;
}
