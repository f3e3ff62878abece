/** `svc apiserver`: parses the command line, runs the server and shuts it down on a signal. */
import { logOptions } from "../flags/log-options.ts";
import { invoke } from "../flags/program.ts";
import { createLogger } from "../std/log/logger.ts";
import { collectGarbageWhenIdle } from "../std/memory/collect-when-idle.ts";
import { createNotifier } from "../std/process/sd-notify.ts";
import { systemClock } from "../std/time/clock.ts";
import { GIT_VERSION } from "../std/version.ts";
import { allowsEverything, apiServerOptions } from "./config/options.ts";
import type { FileKind } from "./config-check/file-kinds.ts";
import { apiserverProgram } from "./flags/flags.ts";
import type { RunningApiServer } from "./server.ts";
import { defaultWorkers, readMachine } from "./workers/worker-count.ts";

/** The exit code after a second signal. */
const INTERRUPTED = 130;

export interface ToolOptions {
  /** Loads the kinds of configuration files of other programs. */
  readonly fileKinds?: () => Promise<readonly FileKind[]>;
}

/** Tools that start no server. */
async function runTool(tool: "check" | "explain", words: readonly string[], tools: ToolOptions): Promise<number> {
  const { stdout, stderr, code } =
    tool === "check"
      ? await (await import("./config-check/command.ts")).runConfigCheck(words, tools.fileKinds)
      : await (await import("./auth-explain/command.ts")).runAuthExplain(words);
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  return code;
}

/** Runs until SIGINT or SIGTERM; a second signal ends it at once. Resolves with the exit code. */
export async function run(argv: readonly string[], tools: ToolOptions = {}): Promise<number> {
  const [group, tool, ...words] = argv;
  if ((group === "config" && tool === "check") || (group === "auth" && tool === "explain")) {
    return await runTool(tool, words, tools);
  }
  const invocation = invoke(apiserverProgram, argv, { version: GIT_VERSION });
  if (invocation.kind === "exit") {
    process.stdout.write(invocation.stdout);
    process.stderr.write(invocation.stderr);
    return invocation.code;
  }
  const { flags, gates, given, version } = invocation;
  const loggerOptions = logOptions(flags, gates.enabled("ContextualLogging"));
  using log = createLogger(loggerOptions);
  for (const warning of invocation.warnings) log.warn(warning);
  if (allowsEverything(flags)) {
    log.warn(
      "--authorization-mode=AlwaysAllow allows every authenticated request; use --authorization-mode=Node,RBAC",
      {
        anonymous: "refused",
      },
    );
  }
  let server: RunningApiServer | undefined;
  using _memory = collectGarbageWhenIdle({ clock: systemClock, onIdle: () => server?.releaseMemory() });
  await using notifier = createNotifier({ env: process.env, clock: systemClock, log });
  const first = Promise.withResolvers<string>();
  const second = Promise.withResolvers<number>();
  let signals = 0;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (signals++ === 0) first.resolve(signal);
    else second.resolve(INTERRUPTED);
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  try {
    // The server is loaded here, so that help and version are printed without it.
    const { startApiServer } = await import("./server.ts");
    const config = apiServerOptions(flags, gates, version, given);
    const workers = config.workers === 0 ? defaultWorkers(readMachine()) : config.workers;
    const starting = startApiServer(
      { ...config, workers },
      {
        clock: systemClock,
        log,
        logOptions: loggerOptions,
        setVerbosity: (level) => log.setVerbosity(level),
      },
    );
    // A signal stops the program also while an unresponsive store delays the start.
    server = await Promise.race([starting, first.promise.then(() => undefined)]);
    if (server === undefined) return INTERRUPTED;
    await notifier.ready();
    const running = server;
    notifier.watchdog(() => running.healthy());
    log.info("Shutting down", { signal: await first.promise });
    await notifier.stopping();
    return await Promise.race([server.close().then(() => 0), second.promise]);
  } catch (error) {
    log.error("Cannot run API server", error);
    return 1;
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}
