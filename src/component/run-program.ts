/** Runs a control plane program with its flags until SIGINT or SIGTERM. */
import { registerBuildMetrics, registerRegistryMetrics } from "../flags/build-metrics.ts";
import type { FlagTable, ParsedFlags } from "../flags/flag.ts";
import type { FeatureGates } from "../flags/gates.ts";
import { logOptions } from "../flags/log-options.ts";
import { invoke, type Program } from "../flags/program.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { createLogger, type Logger } from "../std/log/logger.ts";
import { collectGarbageWhenIdle } from "../std/memory/collect-when-idle.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { registerProcessMetrics } from "../std/metrics/process-metrics.ts";
import { createNotifier } from "../std/process/sd-notify.ts";
import { systemClock } from "../std/time/clock.ts";
import { GIT_VERSION } from "../std/version.ts";
import { versionInfo } from "../std/version-info.ts";
import { type ConnectionOptions, openConnection } from "./connection.ts";
import type { loggingFlags, metricsFlags, servingFlags } from "./flags.ts";
import { loadMetricPolicy } from "./metric-policy.ts";
import type { ComponentDeps, RunningComponent } from "./run-elected.ts";
import { printFlags, serveProgram } from "./serve-program.ts";

/** The exit code after a second signal. */
const INTERRUPTED = 130;

type CommonFlags = ParsedFlags<ReturnType<typeof servingFlags> & typeof metricsFlags & typeof loggingFlags>;

export interface ComponentProgram<T extends FlagTable> {
  /** `kube-controller-manager` */
  readonly name: string;
  readonly program: Program<T>;
  /** The flags that all programs have. */
  readonly common: (flags: ParsedFlags<T>) => CommonFlags;
  /** What the operator should read in the log. */
  readonly warnings?: (flags: ParsedFlags<T>, log: Logger) => void;
  /** Reads files and converts the flags. Rejects with a message for the operator. */
  readonly prepare: (flags: ParsedFlags<T>, gates: FeatureGates) => Promise<PreparedProgram>;
}

export interface PreparedProgram {
  readonly connection: Omit<ConnectionOptions, "userAgent">;
  readonly start: (deps: ComponentDeps, signal: AbortSignal) => RunningComponent;
  /** Of `/metrics/resources`. */
  readonly resourceMetrics?: MetricRegistry;
}

/** Resolves with the exit code: 1 also when leadership is lost, so that the program is started again. */
export async function runProgram<T extends FlagTable>(
  component: ComponentProgram<T>,
  argv: readonly string[],
): Promise<number> {
  const invocation = invoke(component.program, argv, { version: GIT_VERSION });
  if (invocation.kind === "exit") {
    process.stdout.write(invocation.stdout);
    process.stderr.write(invocation.stderr);
    return invocation.code;
  }
  const { flags, gates } = invocation;
  using log = createLogger(logOptions(component.common(flags)));
  for (const warning of invocation.warnings) log.warn(warning);
  component.warnings?.(flags, log);
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
    const running = runUntilStopped(component, { flags, gates }, log, stop.signal, () => notifier.ready());
    return await Promise.race([running.then(() => 0), second.promise]);
  } catch (error) {
    log.error(`Cannot run ${component.name}`, error);
    return 1;
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

async function runUntilStopped<T extends FlagTable>(
  { name, program, prepare, common }: ComponentProgram<T>,
  { flags, gates }: { readonly flags: ParsedFlags<T>; readonly gates: FeatureGates },
  log: ReturnType<typeof createLogger>,
  signal: AbortSignal,
  onReady: () => Promise<void>,
): Promise<void> {
  const clock = systemClock;
  const metrics = await createMetrics(common(flags));
  registerBuildMetrics(metrics, versionInfo(GIT_VERSION), gates.list());
  registerRegistryMetrics(metrics);
  using _process = registerProcessMetrics(metrics);
  const prepared = await prepare(flags, gates);
  // The connection is used until the work has ended.
  const closing = new AbortController();
  const failed = new AbortController();
  const connectionDeps = { clock, metrics, env: process.env };
  const options = { ...prepared.connection, userAgent: name };
  await using connection = await openConnection(options, connectionDeps, closing.signal);
  const deps = { program: name, connection, metrics, clock, random: systemRandom, log };
  const running = prepared.start(deps, AbortSignal.any([signal, failed.signal]));
  running.ended.catch(() => {});
  try {
    const setVerbosity = (level: number): void => log.setVerbosity(level);
    const configz = { flags: printFlags(program.flags, flags) };
    const { resourceMetrics } = prepared;
    const { election } = running;
    const served = { program: name, configz, metrics, resourceMetrics, election, log, setVerbosity };
    await using _server = await serveProgram(common(flags), served, closing.signal);
    await onReady();
    await running.ended;
  } finally {
    failed.abort(new Error("the program has failed"));
    await running.ended.catch(() => {});
    closing.abort(new Error("the program has stopped"));
  }
}

/** Rejects with one sentence when a file of the flags is invalid. */
export async function createMetrics(flags: ParsedFlags<typeof metricsFlags>): Promise<MetricRegistry> {
  const policy = await loadMetricPolicy({
    allowedLabels: flags["allow-metric-labels"],
    allowedLabelsFile: flags["allow-metric-labels-manifest"] || undefined,
    disabled: flags["disabled-metrics"],
    showHidden: flags["show-hidden-metrics-for-version"] !== "",
  });
  return new MetricRegistry(policy);
}
