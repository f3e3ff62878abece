/**
 * The embedded controllers of several API servers on one store: the server that holds a lease runs them, and the others
 * wait for it.
 */
import { hostname } from "node:os";
import type { Client } from "../../client/client.ts";
import { createIdentity, startLeaderElection } from "../../client/leader-election/leader-election.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";

/** Kubernetes' times. The name is none of Kubernetes' programs, which may run other controllers beside these. */
const LEASE = {
  namespace: "kube-system",
  name: "apiserver-embedded-controllers",
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2000,
};
/** After a failed start. */
const RESTART_MS = 5000;

export interface ElectedControllersDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Shows the metrics of the controllers while they run here. */
  readonly registry: MetricRegistry;
  /** Starts the controllers; disposal stops them. */
  readonly run: (registry: MetricRegistry) => Promise<AsyncDisposable>;
}

/** Disposal stops the controllers of this server and gives the lease up. */
export function runElectedControllers(deps: ElectedControllersDeps): AsyncDisposable {
  const stopping = new AbortController();
  const ended = lead(deps, stopping.signal);
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error("the server is stopping"));
      await ended;
    },
  };
}

/** Until the signal aborts: whenever this server is elected. */
async function lead(deps: ElectedControllersDeps, signal: AbortSignal): Promise<void> {
  const { client, clock, random, log } = deps;
  const identity = createIdentity(hostname(), random);
  while (!signal.aborted) {
    const term = new AbortController();
    const options = { ...LEASE, client, clock, random, log: log.child("leader-election"), identity };
    const election = startLeaderElection(options, AbortSignal.any([signal, term.signal]));
    const leading = await election.elected.catch(() => undefined);
    if (leading === undefined) return;
    const isStarted = await runUntil(leading, deps);
    if (!signal.aborted) log.warn("The embedded controllers have stopped; another server may run them");
    term.abort(new Error("the controllers have stopped"));
    await election.release();
    if (!isStarted) await clock.sleep(RESTART_MS, signal).catch(() => {});
  }
}

/** Resolves with whether the controllers have started, when they have stopped. */
async function runUntil(end: AbortSignal, { run, registry, log }: ElectedControllersDeps): Promise<boolean> {
  const metrics = new MetricRegistry(registry.policy);
  using _shown = registry.include(metrics);
  try {
    await using _controllers = await run(metrics);
    await new Promise<void>((resolve) => {
      if (end.aborted) resolve();
      end.addEventListener("abort", () => resolve(), { once: true });
    });
    return true;
  } catch (error) {
    log.error("Cannot start the embedded controllers", error);
    return false;
  }
}
