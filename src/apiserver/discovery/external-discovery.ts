/** Group versions in discovery that this server does not serve itself: those of API services of clients. */

export interface ExternalVersion {
  readonly group: string;
  readonly version: string;
  readonly groupPriority: number;
  readonly versionPriority: number;
  /** The entry of an extension server in aggregated discovery; undefined: the API service has no server. */
  readonly discovered: ExternalResources | undefined;
}

export interface ExternalResources {
  readonly resources: readonly object[];
  readonly freshness: "Current" | "Stale";
}

export interface ExternalDiscovery {
  /** Increases when `versions` has changed. */
  readonly changeCount: number;
  versions(): readonly ExternalVersion[];
  /** Called when the documents are created again. */
  onAggregate?(): void;
}
