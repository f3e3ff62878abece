/** Names of the cgroups of pods and QoS classes. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import { getPodQosClass, type QosClass } from "./qos.ts";

export interface CgroupSettings {
  readonly cgroupDriver: "cgroupfs" | "systemd";
  /** Empty or `/`: the hierarchy's own root. */
  readonly cgroupRoot: string;
  readonly cgroupsPerQos: boolean;
}

/** The parent cgroup of the pod's containers, in the runtime's notation: a path, or a systemd slice. */
export function podCgroupParent(pod: Pod, settings: CgroupSettings): string {
  if (!settings.cgroupsPerQos) return "";
  return cgroupName(`pod${pod.metadata?.uid ?? ""}`, getPodQosClass(pod), settings);
}

/** The cgroup of a QoS class if `name` is empty, else of the pod `podUID` in it. */
export function cgroupName(name: string, qos: QosClass, settings: CgroupSettings): string {
  const tier = qos === "Guaranteed" ? [] : [qos.toLowerCase()];
  const root = settings.cgroupRoot.split("/").filter((part) => part !== "");
  const parts = [...root, "kubepods", ...tier, ...(name === "" ? [] : [name])];
  if (settings.cgroupDriver === "cgroupfs") return `/${parts.join("/")}`;
  // A slice's name is its path with dashes, each dash of the uid an underscore: kubepods-burstable-pod8f_2c.slice.
  return `${parts.map((part) => part.replaceAll("-", "_")).join("-")}.slice`;
}
