/** Runs the controllers against an API server, while this instance is the leader. */
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { createLegacyPayload, type LegacyTokenClaims } from "../auth/service-account/claims.ts";
import { signJws } from "../auth/service-account/jws.ts";
import { readSigningKey } from "../auth/service-account/keys.ts";
import type { UserInfo } from "../auth/user.ts";
import { createClient } from "../client/api-client.ts";
import type { Client } from "../client/client.ts";
import { createEventRecorder } from "../client/events/event-recorder.ts";
import { createIdentity, type LeaderElection, startLeaderElection } from "../client/leader-election/leader-election.ts";
import type { Connection } from "../component/connection.ts";
import { startControllers } from "../controllers/controller-manager.ts";
import { waitForAbort } from "../std/async/wait-for-abort.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import { createQueueMetrics } from "../std/metrics/queue-metrics.ts";
import type { Clock } from "../std/time/clock.ts";
import { accountTransport } from "./account-clients.ts";
import type { ControllerManagerOptions } from "./options.ts";
import { findServedKinds } from "./served-kinds.ts";

export interface ControllerManagerDeps {
  readonly connection: Pick<Connection, "transport" | "unlimited" | "ca">;
  readonly metrics: MetricRegistry;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

/** The program's name in user agents, and as the source of events. */
export const PROGRAM = "kube-controller-manager";
const ACCOUNT = /^system:serviceaccount:kube-system:(.+)$/;
/** How long to wait before the API server is read again while it cannot be reached. */
const RETRY_MS = 2_000;

export interface RunningControllerManager {
  /** Undefined without leader election. */
  readonly election: LeaderElection | undefined;
  /** Resolves when the signal has aborted and all controllers have stopped. Rejects when leadership is lost. */
  readonly ended: Promise<void>;
}

export function runControllerManager(
  options: ControllerManagerOptions,
  deps: ControllerManagerDeps,
  signal: AbortSignal,
): RunningControllerManager {
  const { connection, clock, random, log, metrics } = deps;
  // Renewals of the lease do not wait for the limit of requests.
  const client = createClient({ transport: connection.unlimited, userAgent: PROGRAM });
  if (options.election === undefined) return { election: undefined, ended: runControllers(options, deps, signal) };
  const isLeader = metrics.gauge({
    name: "leader_election_master_status",
    help: "Whether this instance is the leader of the lease.",
    stability: "ALPHA",
    labels: ["name"],
  });
  const { name } = options.election;
  isLeader.with(name).set(0);
  const recorder = createEventRecorder({ client, clock, random, log, component: PROGRAM });
  const identity = createIdentity(hostname(), random);
  const onNewLeader = (leader: string): void => log.info("New leader elected", { identity: leader });
  const election = startLeaderElection(
    { ...options.election, client, clock, random, log: log.child("leader-election"), recorder, identity, onNewLeader },
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
      await runControllers(options, deps, leading);
      isLeader.with(name).set(0);
      if (!signal.aborted) throw new Error("leader election lost");
      await election.release();
    } finally {
      await recorder[Symbol.asyncDispose]();
    }
  };
  return { election, ended: lead() };
}

/** Runs the controllers until the signal aborts. */
async function runControllers(
  options: ControllerManagerOptions,
  deps: ControllerManagerDeps,
  signal: AbortSignal,
): Promise<void> {
  const { connection, clock, random, log, metrics } = deps;
  const { rootCaFile, accountKeyFile, signing, controllerOptions, contentType } = options;
  const key =
    accountKeyFile === "" ? undefined : readSigningKey(accountKeyFile, await readFile(accountKeyFile, "utf8"));
  const clusterCa = rootCaFile === "" ? connection.ca : await readFile(rootCaFile, "utf8");
  const own = createClient({ transport: connection.transport, userAgent: PROGRAM, contentType });
  const kinds = await retryUntilServed(() => findServedKinds(connection.transport, signal), deps, signal);
  if (kinds === undefined) return;
  const clientFor = ({ name }: UserInfo): Client => {
    const account = options.usesAccounts ? ACCOUNT.exec(name)?.[1] : undefined;
    if (account === undefined) return own;
    const transport = accountTransport(account, { transport: connection.transport, client: own, clock });
    return createClient({ transport, userAgent: `${PROGRAM}/${account}`, contentType });
  };
  const running = startControllers(options.controllers, {
    clientFor,
    clusterCa,
    signing,
    signLegacyToken:
      key === undefined ? undefined : async (claims: LegacyTokenClaims) => signJws(createLegacyPayload(claims), key),
    clock,
    random,
    log: log.child("controllers"),
    kinds,
    queueMetrics: createQueueMetrics(metrics),
    options: controllerOptions,
  });
  log.info("Started controllers", { controllers: options.controllers });
  try {
    await Promise.race([running.ended, waitForAbort(signal)]);
  } finally {
    await running[Symbol.asyncDispose]();
  }
}

/** Undefined if the program stops first. */
async function retryUntilServed<T>(
  read: () => Promise<T>,
  { clock, log }: ControllerManagerDeps,
  signal: AbortSignal,
): Promise<T | undefined> {
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (signal.aborted) return undefined;
      log.warn("Cannot read which kinds the API server serves, will retry", { error: String(error) });
      await clock.sleep(RETRY_MS, signal).catch(() => undefined);
    }
  }
}
