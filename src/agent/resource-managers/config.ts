/** Configuration of the managers of CPUs, memory and devices. */
import type { MemoryReservation } from "./memory/reserved-memory.ts";
import type { TopologyPolicy, TopologyScope } from "./topology/topology-manager.ts";
import type { OptionGates } from "./topology/topology-options.ts";

export interface ResourceManagersConfig {
  readonly cpu: CpuManagerConfig;
  readonly memory: MemoryManagerConfig;
  readonly topology: TopologyManagerConfig;
  /** Whether claims of devices are prepared (Dynamic Resource Allocation). */
  readonly preparesClaims: boolean;
  /** Whether the status of pods has the health of their devices. */
  readonly reportsDeviceHealth: boolean;
  /** Whether the pod resources API has the devices of claims. */
  readonly servesDynamicResources: boolean;
  /** Whether the pod resources API serves single pods. */
  readonly servesPodResourcesGet: boolean;
}

export interface CpuManagerConfig {
  readonly policy: "none" | "static";
  readonly options: Readonly<Record<string, string>>;
  readonly gates: OptionGates;
  readonly reconcileMs: number;
  /** `0-1,8`; empty: the policy chooses as many CPUs as are reserved. */
  readonly reservedCpus: string;
  /** Whether containers with CPUs of their own have no quota of CPU time. */
  readonly quotaOffForExclusive: boolean;
  /** Whether Guaranteed pods can be resized in place. */
  readonly resizesExclusive: boolean;
}

export interface MemoryManagerConfig {
  readonly policy: "None" | "Static";
  readonly reserved: readonly MemoryReservation[];
}

export interface TopologyManagerConfig {
  readonly policy: TopologyPolicy;
  readonly scope: TopologyScope;
  readonly options: Readonly<Record<string, string>>;
  readonly gates: OptionGates;
}
