/** `svc controller-manager`, also invoked as `kube-controller-manager`: runs until SIGINT or SIGTERM. */
import { createClient } from "../client/api-client.ts";
import type { LeaderElection } from "../client/leader-election/leader-election.ts";
import { openConnection } from "../component/connection.ts";
import { createDelegatedAccess } from "../component/delegated-access.ts";
import { serveComponent } from "../component/serving.ts";
import { type Flag, type ParsedFlags, printValue } from "../flags/flag.ts";
import { logOptions } from "../flags/log-options.ts";
import { invoke } from "../flags/program.ts";
import { parseTlsVersion, toOpenSslCiphers } from "../http/tls/cipher-suites.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { createLogger, type Logger } from "../std/log/logger.ts";
import { collectGarbageWhenIdle } from "../std/memory/collect-when-idle.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { registerProcessMetrics } from "../std/metrics/process-metrics.ts";
import { createNotifier } from "../std/process/sd-notify.ts";
import { systemClock } from "../std/time/clock.ts";
import { GIT_VERSION } from "../std/version.ts";
import { selectControllers } from "./controller-names.ts";
import { controllerManagerFlags, controllerManagerProgram } from "./flags.ts";
import { controllerManagerOptions } from "./options.ts";
import { PROGRAM, runControllerManager } from "./run.ts";

/** The exit code after a second signal. */
const INTERRUPTED = 130;
/** As Kubernetes: how long after the end of its lease a leader counts as healthy. */
const LEASE_TOLERANCE_MS = 20_000;

type Flags = ParsedFlags<typeof controllerManagerFlags>;

/** Resolves with the exit code: 1 also when leadership is lost, so that the program is started again. */
export async function run(argv: readonly string[]): Promise<number> {
  const invocation = invoke(controllerManagerProgram, argv, { version: GIT_VERSION });
  if (invocation.kind === "exit") {
    process.stdout.write(invocation.stdout);
    process.stderr.write(invocation.stderr);
    return invocation.code;
  }
  const { flags } = invocation;
  using log = createLogger(logOptions(flags));
  for (const warning of invocation.warnings) log.warn(warning);
  for (const name of selectControllers(flags.controllers).absent) {
    log.warn("This build has no such controller; --controllers ignores it", { controller: name });
  }
  using _memory = collectGarbageWhenIdle({ clock: systemClock });
  await using notifier = createNotifier({ env: process.env, clock: systemClock, log });
  const stop = new AbortController();
  const second = Promise.withResolvers<number>();
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stop.signal.aborted) second.resolve(INTERRUPTED);
    log.info("Shutting down", { signal });
    stop.abort(new Error(signal));
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  try {
    const running = runUntilStopped(flags, log, stop.signal, () => notifier.ready());
    return await Promise.race([running.then(() => 0), second.promise]);
  } catch (error) {
    log.error("Cannot run controller manager", error);
    return 1;
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

async function runUntilStopped(
  flags: Flags,
  log: ReturnType<typeof createLogger>,
  signal: AbortSignal,
  onReady: () => Promise<void>,
): Promise<void> {
  const clock = systemClock;
  const metrics = new MetricRegistry();
  using _process = registerProcessMetrics(metrics);
  const options = controllerManagerOptions(flags);
  // The connection is used until the controllers have stopped.
  const closing = new AbortController();
  const failed = new AbortController();
  const deps = { clock, metrics, env: process.env };
  await using connection = await openConnection({ ...options.connection, userAgent: PROGRAM }, deps, closing.signal);
  const stopping = AbortSignal.any([signal, failed.signal]);
  const manager = runControllerManager(options, { connection, metrics, clock, random: systemRandom, log }, stopping);
  manager.ended.catch(() => {});
  try {
    await using _server = await serve(flags, { metrics, election: manager.election, log }, closing.signal);
    await onReady();
    await manager.ended;
  } finally {
    failed.abort(new Error("the program has failed"));
    await manager.ended.catch(() => {});
    closing.abort(new Error("the program has stopped"));
  }
}

interface ServedParts {
  readonly metrics: MetricRegistry;
  readonly election: LeaderElection | undefined;
  readonly log: ReturnType<typeof createLogger>;
}

/** Rejects with a message for the operator. */
async function serve(
  flags: Flags,
  { metrics, election, log }: ServedParts,
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const access = await openAccess(flags, log, stack, signal);
  const lease = { name: "leaderElection", check: () => election?.checkLease(LEASE_TOLERANCE_MS) };
  const listener = await serveComponent({
    name: PROGRAM,
    address: flags["bind-address"],
    port: flags["secure-port"],
    certFile: flags["tls-cert-file"],
    keyFile: flags["tls-private-key-file"],
    certDir: flags["cert-dir"],
    tls: {
      minVersion: parseTlsVersion(flags["tls-min-version"]),
      ciphers: toOpenSslCiphers(flags["tls-cipher-suites"]),
    },
    clientCa: access.clientCa,
    access: access.filter,
    checks: [{ name: "ping", check: () => {} }, ...(election === undefined ? [] : [lease])],
    metrics: [metrics],
    configz: { flags: printedFlags(flags) },
    setVerbosity: flags.profiling ? (verbosity) => log.setVerbosity(verbosity) : undefined,
    clock: systemClock,
    log: log.child("server"),
  });
  if (listener !== undefined) stack.use(listener);
  return stack.move();
}

async function openAccess(flags: Flags, log: Logger, stack: AsyncDisposableStack, signal: AbortSignal) {
  const clock = systemClock;
  const clientOf = async (kubeconfig: string) => {
    if (kubeconfig === "") return undefined;
    const options = { kubeconfig, server: "", userAgent: PROGRAM, qps: 0, burst: 0 };
    const deps = { clock, metrics: new MetricRegistry(), env: process.env };
    const { transport } = stack.use(await openConnection(options, deps, signal));
    return createClient({ transport, userAgent: PROGRAM });
  };
  return await createDelegatedAccess({
    clientCaFile: flags["client-ca-file"],
    authenticationClient: await clientOf(flags["authentication-kubeconfig"]),
    tokenCacheMs: flags["authentication-token-webhook-cache-ttl"],
    authorizationClient: await clientOf(flags["authorization-kubeconfig"]),
    allowedMs: flags["authorization-webhook-cache-authorized-ttl"],
    deniedMs: flags["authorization-webhook-cache-unauthorized-ttl"],
    allowedPaths: flags["authorization-always-allow-paths"],
    clock,
    log,
  });
}

function printedFlags(flags: Flags): Readonly<Record<string, string>> {
  const rows = Object.entries(controllerManagerFlags) as [keyof Flags, Flag][];
  return Object.fromEntries(rows.map(([name, row]) => [name, printValue(row, flags[name])]));
}
