/** Runs the controllers against an API server, while this instance is the leader. */
import { readFile } from "node:fs/promises";
import { createLegacyPayload, type LegacyTokenClaims } from "../auth/service-account/claims.ts";
import { signJws } from "../auth/service-account/jws.ts";
import { readSigningKey } from "../auth/service-account/keys.ts";
import type { UserInfo } from "../auth/user.ts";
import { createClient } from "../client/api-client.ts";
import type { Client } from "../client/client.ts";
import { type ComponentDeps, type RunningComponent, runElected } from "../component/run-elected.ts";
import { startControllers } from "../controllers/controller-manager.ts";
import { waitForAbort } from "../std/async/wait-for-abort.ts";
import { createQueueMetrics } from "../std/metrics/queue-metrics.ts";
import { accountTransport } from "./account-clients.ts";
import type { ControllerManagerOptions } from "./options.ts";
import { findServedKinds } from "./served-kinds.ts";

/** The program's name in user agents, and as the source of events. */
export const PROGRAM = "kube-controller-manager";
const ACCOUNT = /^system:serviceaccount:kube-system:(.+)$/;
/** How long to wait before the API server is read again while it cannot be reached. */
const RETRY_MS = 2_000;

export function runControllerManager(
  options: ControllerManagerOptions,
  deps: Omit<ComponentDeps, "program">,
  signal: AbortSignal,
): RunningComponent {
  const work = (leading: AbortSignal): Promise<void> => runControllers(options, deps, leading);
  return runElected(options.election, { ...deps, program: PROGRAM }, work, signal);
}

/** Runs the controllers until the signal aborts. */
async function runControllers(
  options: ControllerManagerOptions,
  deps: Omit<ComponentDeps, "program">,
  signal: AbortSignal,
): Promise<void> {
  const { connection, clock, random, log, metrics } = deps;
  const { rootCaFile, accountKeyFile, signing, controllerOptions, features, contentType, streamsLists, cbor } = options;
  const key =
    accountKeyFile === "" ? undefined : readSigningKey(accountKeyFile, await readFile(accountKeyFile, "utf8"));
  const clusterCa = rootCaFile === "" ? connection.ca : await readFile(rootCaFile, "utf8");
  const own = createClient({ transport: connection.transport, userAgent: PROGRAM, contentType, streamsLists, cbor });
  const kinds = await retryUntilServed(() => findServedKinds(connection.transport, signal), deps, signal);
  if (kinds === undefined) return;
  const clientFor = ({ name }: UserInfo): Client => {
    const account = options.usesAccounts ? ACCOUNT.exec(name)?.[1] : undefined;
    // Each has a limit of its own, as in Kubernetes: the lists of one at the start delay no other, nor the lease.
    if (account === undefined) {
      const transport = connection.createTransport();
      return createClient({ transport, userAgent: PROGRAM, contentType, streamsLists, cbor });
    }
    const limited = connection.createAnonymousTransport();
    const transport = accountTransport(account, { transport: limited, client: own, clock });
    return createClient({ transport, userAgent: `${PROGRAM}/${account}`, contentType, streamsLists, cbor });
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
    registry: metrics,
    queueMetrics: createQueueMetrics(metrics),
    options: controllerOptions,
    features,
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
  { clock, log }: Omit<ComponentDeps, "program">,
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
