/** Runs the work of a program, while this instance is the leader. */
import { hostname } from "node:os";
import { createClient } from "../client/api-client.ts";
import { createEventRecorder } from "../client/events/event-recorder.ts";
import { createIdentity, type LeaderElection, startLeaderElection } from "../client/leader-election/leader-election.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { Clock } from "../std/time/clock.ts";
import type { Connection } from "./connection.ts";
import type { LeaseOptions } from "./lease-options.ts";

export interface ComponentDeps {
  /** `kube-controller-manager`: the name in user agents, and as the source of events. */
  readonly program: string;
  readonly connection: Pick<
    Connection,
    "transport" | "createTransport" | "createAnonymousTransport" | "unlimited" | "ca"
  >;
  readonly metrics: MetricRegistry;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

export interface RunningComponent {
  /** Undefined without leader election. */
  readonly election: LeaderElection | undefined;
  /** Resolves when the signal has aborted and the work has ended. Rejects when leadership is lost. */
  readonly ended: Promise<void>;
}

/** `work` runs until its signal aborts. Without options for a lease it runs at once. */
export function runElected(
  lease: LeaseOptions | undefined,
  { program, connection, clock, random, log, metrics }: ComponentDeps,
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): RunningComponent {
  if (lease === undefined) return { election: undefined, ended: work(signal) };
  // Renewals of the lease do not wait for the limit of requests.
  const client = createClient({ transport: connection.unlimited, userAgent: program });
  const isLeader = metrics.gauge({
    name: "leader_election_master_status",
    help: "Whether this instance is the leader of the lease.",
    stability: "ALPHA",
    labels: ["name"],
  });
  const { name } = lease;
  isLeader.with(name).set(0);
  const recorder = createEventRecorder({ client, clock, random, log, component: program });
  const identity = createIdentity(hostname(), random);
  const onNewLeader = (leader: string): void => log.info("New leader elected", { identity: leader });
  const election = startLeaderElection(
    { ...lease, client, clock, random, log: log.child("leader-election"), recorder, identity, onNewLeader },
    signal,
  );
  const lead = async (): Promise<void> => {
    try {
      const leading = await election.elected.catch((error: unknown) => {
        if (signal.aborted) return undefined;
        throw error;
      });
      if (leading === undefined) return;
      isLeader.with(name).set(1);
      await work(leading);
      isLeader.with(name).set(0);
      if (!signal.aborted) throw new Error("leader election lost");
      await election.release();
    } finally {
      await recorder[Symbol.asyncDispose]();
    }
  };
  return { election, ended: lead() };
}
