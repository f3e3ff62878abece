/** `svc controller-manager`, also invoked as `kube-controller-manager`: runs until SIGINT or SIGTERM. */
import { openConnection } from "../component/connection.ts";
import type { ParsedFlags } from "../flags/flag.ts";
import { logOptions } from "../flags/log-options.ts";
import { invoke } from "../flags/program.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { createLogger } from "../std/log/logger.ts";
import { collectGarbageWhenIdle } from "../std/memory/collect-when-idle.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { registerProcessMetrics } from "../std/metrics/process-metrics.ts";
import { createNotifier } from "../std/process/sd-notify.ts";
import { systemClock } from "../std/time/clock.ts";
import { GIT_VERSION } from "../std/version.ts";
import { selectControllers } from "./controller-names.ts";
import { type controllerManagerFlags, controllerManagerProgram } from "./flags.ts";
import { controllerManagerOptions } from "./options.ts";
import { PROGRAM, runControllerManager } from "./run.ts";
import { serveProgram } from "../component/serve-program.ts";

/** The exit code after a second signal. */
const INTERRUPTED = 130;

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
    const setVerbosity = (level: number): void => log.setVerbosity(level);
    const served = { metrics, election: manager.election, log, setVerbosity };
    await using _server = await serveProgram(flags, served, closing.signal);
    await onReady();
    await manager.ended;
  } finally {
    failed.abort(new Error("the program has failed"));
    await manager.ended.catch(() => {});
    closing.abort(new Error("the program has stopped"));
  }
}
