/** `svc up`: runs a cluster until SIGINT or SIGTERM. */
import { stat } from "node:fs/promises";
import { hostname, networkInterfaces } from "node:os";
import { checkNodeIps } from "../agent/node/network/node-ips.ts";
import { expandControllerNames } from "../controllers/controller-manager.ts";
import { logOptions } from "../flags/log-options.ts";
import { invoke } from "../flags/program.ts";
import { waitForAbort } from "../std/async/wait-for-abort.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { createLogger, type Logger } from "../std/log/logger.ts";
import { collectGarbageWhenIdle } from "../std/memory/collect-when-idle.ts";
import { createNotifier } from "../std/process/sd-notify.ts";
import { systemClock } from "../std/time/clock.ts";
import { GIT_VERSION } from "../std/version.ts";
import type { ClusterDeps, RunningCluster } from "./cluster.ts";
import { upProgram } from "./flags.ts";
import { checkPlatform, HostError, inspectMachine } from "./host/host.ts";
import { type UpOptions, upOptions } from "./options.ts";
import { reportText } from "./report.ts";
import { systemdUnit } from "./systemd/unit.ts";

/** The exit code after a second signal. */
const INTERRUPTED = 130;

export async function run(argv: readonly string[]): Promise<number> {
  const invocation = invoke(upProgram, argv, { version: GIT_VERSION });
  if (invocation.kind === "exit") {
    process.stdout.write(invocation.stdout);
    process.stderr.write(invocation.stderr);
    return invocation.code;
  }
  const { flags, version } = invocation;
  if (flags["print-systemd-unit"]) {
    process.stdout.write(systemdUnit({ command: buildUnitCommand(argv) }));
    return 0;
  }
  const loggerOptions = logOptions(flags);
  using log = createLogger(loggerOptions);
  for (const warning of invocation.warnings) log.warn(warning);
  const machine = inspectMachine(process.env);
  try {
    checkPlatform(machine);
    const routes = machine.readText("/proc/net/route");
    const options = upOptions(flags, { hostname: hostname(), interfaces: networkInterfaces(), routes });
    checkNodeIps(options.nodeIps);
    if (flags["image-dir"] !== "") await checkImageDirectory(options.imageDir);
    const deps = { machine, clock: systemClock, random: systemRandom, log, logOptions: loggerOptions, version };
    return await runCluster(options, deps);
  } catch (error) {
    // Its message is complete; other errors are logged with their causes.
    if (error instanceof HostError) process.stderr.write(`${error.message}\n`);
    else log.error("Cannot run svc up", error);
    return 1;
  }
}

/** A directory that a flag sets must exist: its images would be missing without a word. */
async function checkImageDirectory(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() !== true) throw new Error(`Cannot use --image-dir: ${path} is not a directory`);
}

async function runCluster(options: UpOptions, deps: ClusterDeps): Promise<number> {
  const { clock, log } = deps;
  const controllers = expandControllerNames(options.controllers);
  const began = clock.monotonic();
  let running: RunningCluster | undefined;
  using _memory = collectGarbageWhenIdle({ clock, onIdle: () => running?.releaseMemory() });
  await using notifier = createNotifier({ env: process.env, clock, log });
  const signals = new StopSignals(log);
  try {
    // Loaded here, so that help and the systemd unit are printed without the server and the agent.
    const { startCluster } = await import("./cluster.ts");
    const starting = startCluster(options, deps, signals.abortSignal);
    const cluster = await Promise.race([starting, signals.second]).catch((error: unknown) => {
      if (error === signals.abortSignal.reason) return "stopped" as const;
      throw error;
    });
    if (cluster === "stopped") return 0;
    if (cluster === undefined) return INTERRUPTED;
    running = cluster;
    notifier.watchdog(() => cluster.healthy());
    await notifier.ready("The node is ready");
    process.stdout.write(
      reportText({
        server: advertisedUrl(options),
        nodeName: options.nodeName,
        nodeIps: options.nodeIps,
        runtime: cluster.runtime,
        dataDir: options.dataDir,
        svcconfig: cluster.svcconfig,
        controllers,
        stopPods: options.stopPods,
        startedInMs: clock.monotonic() - began,
      }),
    );
    await signals.first;
    await notifier.stopping();
    return await Promise.race([cluster.close().then(() => 0), signals.second.then(() => INTERRUPTED)]);
  } finally {
    signals[Symbol.dispose]();
  }
}

/** The URL for other machines; that of the bind address when the server listens on one address only. */
function advertisedUrl(options: UpOptions): string {
  const wildcard = ["0.0.0.0", "::", ""].includes(options.bindAddress);
  return `https://${bracketAddress(wildcard ? options.nodeIps[0]! : options.bindAddress)}:${options.securePort}`;
}

function bracketAddress(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}

/** The first SIGINT or SIGTERM requests a graceful stop, the second an immediate exit. */
class StopSignals implements Disposable {
  readonly #first = new AbortController();
  readonly #second = Promise.withResolvers<undefined>();
  readonly #log: Logger;
  #count = 0;
  readonly #onSignal = (signal: NodeJS.Signals): void => {
    this.#count++;
    this.#log.info(this.#count === 1 ? "Stopping; a second signal exits immediately" : "Exiting immediately", {
      signal,
    });
    this.#first.abort();
    if (this.#count > 1) this.#second.resolve(undefined);
  };

  constructor(log: Logger) {
    this.#log = log;
    process.on("SIGINT", this.#onSignal).on("SIGTERM", this.#onSignal);
  }

  /** Aborts with the first signal. */
  get abortSignal(): AbortSignal {
    return this.#first.signal;
  }

  get first(): Promise<void> {
    return waitForAbort(this.#first.signal);
  }

  get second(): Promise<undefined> {
    return this.#second.promise;
  }

  [Symbol.dispose](): void {
    process.off("SIGINT", this.#onSignal).off("SIGTERM", this.#onSignal);
  }
}

/** This command line without `--print-systemd-unit`. */
function buildUnitCommand(argv: readonly string[]): readonly string[] {
  const flags = argv.filter((word) => !/^--?print[-_]systemd[-_]unit(?:=.*)?$/.test(word));
  const script = process.argv[1] ?? "";
  const isScript = script !== "" && script !== process.execPath;
  // dist/svc looks for Node.js itself; SVC_NODE selects the one that runs now.
  const single = isScript && process.execArgv.includes("-e");
  const program = single ? ["/usr/bin/env", `SVC_NODE=${process.execPath}`, script] : [process.execPath];
  return [...program, ...(isScript && !single ? [...process.execArgv, script] : []), "up", ...flags];
}
