/** Taints of devices and tolerations of them. */
import type { DeviceTaint, DeviceToleration } from "../../../api/resource/schemas.ts";

export function toleratesTaints(tolerations: readonly DeviceToleration[], taints: readonly DeviceTaint[]): boolean {
  return taints.every((taint) => tolerations.some((toleration) => toleratesTaint(toleration, taint)));
}

export function toleratesTaint({ key, operator, value = "", effect }: DeviceToleration, taint: DeviceTaint): boolean {
  if (effect && effect !== taint.effect) return false;
  if (key && key !== taint.key) return false;
  if (operator === "Exists") return true;
  return (!operator || operator === "Equal") && value === (taint.value ?? "");
}
