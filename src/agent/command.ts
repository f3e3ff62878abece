/** `svc agent`, also invoked as `svclet`; `svc agent doctor`. */
import { logOptions } from "../flags/log-options.ts";
import { createLogger, type Logger } from "../std/log/logger.ts";
import { collectGarbageWhenIdle } from "../std/memory/collect-when-idle.ts";
import { createNotifier } from "../std/process/sd-notify.ts";
import { systemClock } from "../std/time/clock.ts";
import { KUBERNETES_VERSION } from "../std/version.ts";
import { joinCluster } from "./api-server/join.ts";
import { type AgentInvocation, parseAgentCommandLine } from "./config/command-line.ts";
import { checkNodeIps } from "./node/network/node-ips.ts";
import { toAgentConfig } from "./options.ts";
import type { MakeNodeApi } from "./standalone/standalone.ts";

export interface RunDeps {
  /** See `AgentDeps`. */
  readonly nodeApi?: () => Promise<MakeNodeApi>;
}

/**
 * Runs until SIGINT or SIGTERM, or, with `--runonce`, until all pods run. Containers keep running. Resolves with the
 * exit code.
 */
export async function run(argv: readonly string[], deps: RunDeps = {}): Promise<number> {
  if (argv[0] === "doctor") return await (await import("./doctor/command.ts")).run(argv.slice(1));
  const invocation = parseAgentCommandLine(argv, process.env, { version: KUBERNETES_VERSION });
  if (invocation.kind === "exit") {
    process.stdout.write(invocation.stdout);
    process.stderr.write(invocation.stderr);
    return invocation.code;
  }
  const { effective } = invocation;
  const { gates } = effective;
  using log = createLogger(logOptions(effective.flags, gates.enabled("ContextualLogging")));
  for (const warning of effective.warnings) log.warn(warning);
  using _memory = collectGarbageWhenIdle({ clock: systemClock });
  await using notifier = createNotifier({ env: process.env, clock: systemClock, log });
  const stopReason = Promise.withResolvers<string>();
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    stopReason.resolve(signal);
    stop.abort(new Error(signal));
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  try {
    // Help, version and configuration are printed without loading the rest of the agent.
    const { startAgent } = await import("./agent.ts");
    const { shareMounts } = await import("./volumes/mount/shared-mounts.ts");
    const { join, token, "ca-hash": caHash } = effective.flags;
    const configured = toAgentConfig(effective);
    checkNodeIps(configured.node.ips);
    await using lock = await acquireLockFile(effective.flags, stopReason, stop.signal, log);
    if (lock === undefined) return 0;
    const options =
      join === "" ? configured : await joinCluster(configured, { server: join, token, caHash }, stop.signal);
    const agent = await startAgent(options, {
      clock: systemClock,
      log,
      setVerbosity: (level) => log.setVerbosity(level),
      stopping: stop.signal,
      shareMounts,
      ...deps,
    });
    await notifier.ready();
    if (options.observability.watchdog) notifier.watchdog(async () => agent.isHealthy());
    try {
      const ranOnce = options.sources.runOnce ? agent.ranOnce() : new Promise<never>(() => {});
      log.info("Stopping node agent", { reason: await Promise.race([stopReason.promise, ranOnce]) });
    } finally {
      await notifier.stopping();
      await agent.close();
    }
    return 0;
  } catch (error) {
    if (stop.signal.aborted) {
      log.info("Stopping node agent", { reason: (stop.signal.reason as Error).message });
      return 0;
    }
    log.error("Cannot run node agent", error);
    return 1;
  } finally {
    stop.abort(new Error("the agent has stopped"));
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

type AgentFlags = AgentInvocation["effective"]["flags"];

/** Undefined when the agent is stopped before it has the lock. */
async function acquireLockFile(
  flags: AgentFlags,
  stopReason: PromiseWithResolvers<string>,
  stop: AbortSignal,
  log: Logger,
): Promise<AsyncDisposable | undefined> {
  const path = flags["lock-file"];
  if (path === "") return new AsyncDisposableStack();
  const { acquireLock } = await import("./lock-file.ts");
  log.info("Acquiring file lock", { path });
  try {
    const lock = await acquireLock(path, stop);
    if (flags["exit-on-lock-contention"]) {
      lock
        .waitForContention(systemClock, stop)
        .then(() => stopReason.resolve(`another process waits for the lock on ${path}`), stopReason.reject);
      stopReason.promise.catch(() => undefined);
    }
    return lock;
  } catch (error) {
    if (stop.aborted) return undefined;
    throw error;
  }
}
