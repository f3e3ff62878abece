/** Why a plugin rejects a pod, on one node or on all. */

/**
 * `UnschedulableAndUnresolvable`: preemption does not help. `Pending`: the pod waits for the plugin itself.
 * `Error`: the plugin failed.
 */
type RejectionCode = "Unschedulable" | "UnschedulableAndUnresolvable" | "Pending" | "Error";

export interface Rejection {
  readonly code: RejectionCode;
  readonly plugin: string;
  readonly reasons: readonly string[];
}

/** Other pods may leave, so that the pod fits. */
export function unschedulable(plugin: string, ...reasons: readonly string[]): Rejection {
  return { code: "Unschedulable", plugin, reasons };
}

/** No pod that leaves makes the pod fit. */
export function unresolvable(plugin: string, ...reasons: readonly string[]): Rejection {
  return { code: "UnschedulableAndUnresolvable", plugin, reasons };
}

export function failed(plugin: string, error: unknown): Rejection {
  return { code: "Error", plugin, reasons: [error instanceof Error ? error.message : String(error)] };
}
