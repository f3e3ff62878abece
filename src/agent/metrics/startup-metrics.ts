/** How long the node took from its boot to Ready, with the names of kubelet's metrics; recorded once. */
import type { MetricRegistry } from "../../std/metrics/metrics.ts";

/** Milliseconds since 1970. */
export interface NodeStartup {
  readonly bootedAt: number;
  readonly agentStartedAt: number;
  /** When the agent first attempted to create the Node object. */
  readonly registeringAt: number;
  readonly registeredAt: number;
  readonly readyAt: number;
}

export function recordNodeStartup(registry: MetricRegistry, startup: NodeStartup): void {
  const { bootedAt, agentStartedAt, registeringAt, registeredAt, readyAt } = startup;
  const set = (phase: string, help: string, milliseconds: number): void => {
    const name = `kubelet_node_startup_${phase}duration_seconds`;
    const options = { name, help: `Duration in seconds of node startup ${help}`, stability: "ALPHA" } as const;
    // The clock may have been set in between.
    registry
      .gauge(options)
      .with()
      .set(Math.max(0, milliseconds) / 1000);
  };
  set("pre_kubelet_", "before kubelet starts.", agentStartedAt - bootedAt);
  set("pre_registration_", "before registration.", registeringAt - agentStartedAt);
  set("registration_", "during registration.", registeredAt - registeringAt);
  set("post_registration_", "after registration.", readyAt - registeredAt);
  set("", "in total.", readyAt - bootedAt);
}
