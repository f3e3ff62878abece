/** The configuration of the scheduler: the part of `KubeSchedulerConfiguration` that it uses. */
import type { ExtensionPoint } from "../framework/plugin.ts";
import type { PluginArgs } from "../plugins/registry.ts";

export interface SchedulerConfiguration {
  readonly profiles: readonly ProfileConfiguration[];
  readonly extenders: readonly ExtenderConfiguration[];
  /** From 0 to 100; 0 for Kubernetes' function of the number of nodes. */
  readonly percentageOfNodesToScore: number;
  readonly podInitialBackoffSeconds: number;
  readonly podMaxBackoffSeconds: number;
  /** A pod that no event concerns is tried again after this time. */
  readonly unschedulableMaxMs: number;
}

export interface ProfileConfiguration {
  readonly schedulerName: string;
  readonly percentageOfNodesToScore?: number | undefined;
  readonly plugins?: PluginsConfiguration | undefined;
  readonly pluginConfig?: Partial<PluginArgs> | undefined;
}

export type PluginsConfiguration = {
  readonly [point in ExtensionPoint | "multiPoint"]?: PluginSetConfiguration | undefined;
};

export interface PluginSetConfiguration {
  readonly enabled?: readonly { readonly name: string; readonly weight?: number | undefined }[] | undefined;
  /** `*` disables all default plugins. */
  readonly disabled?: readonly { readonly name: string }[] | undefined;
}

export interface ExtenderConfiguration {
  readonly urlPrefix: string;
  readonly filterVerb?: string | undefined;
  readonly preemptVerb?: string | undefined;
  readonly prioritizeVerb?: string | undefined;
  readonly weight?: number | undefined;
  readonly bindVerb?: string | undefined;
  readonly enableHTTPS?: boolean | undefined;
  readonly tlsConfig?: ExtenderTlsConfiguration | undefined;
  readonly httpTimeoutMs: number;
  readonly nodeCacheCapable?: boolean | undefined;
  readonly managedResources?:
    | readonly { readonly name: string; readonly ignoredByScheduler?: boolean | undefined }[]
    | undefined;
  readonly ignorable?: boolean | undefined;
}

export interface ExtenderTlsConfiguration {
  readonly insecure?: boolean | undefined;
  readonly serverName?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly caFile?: string | undefined;
  /** Base64. */
  readonly certData?: string | undefined;
  readonly keyData?: string | undefined;
  readonly caData?: string | undefined;
}

export const DEFAULT_SCHEDULER_NAME = "default-scheduler";

export const defaultConfiguration: SchedulerConfiguration = {
  profiles: [{ schedulerName: DEFAULT_SCHEDULER_NAME }],
  extenders: [],
  percentageOfNodesToScore: 0,
  podInitialBackoffSeconds: 1,
  podMaxBackoffSeconds: 10,
  unschedulableMaxMs: 300_000,
};
