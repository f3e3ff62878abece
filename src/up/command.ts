/** `svc up`: resolves with the exit code. */
import { hostname, networkInterfaces } from "node:os";
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
import type { ClusterDeps } from "./cluster.ts";
import { upProgram } from "./flags.ts";
import { checkPlatform, HostError, inspectMachine } from "./host/host.ts";
import { type UpOptions, upOptions } from "./options.ts";
import { reportText } from "./report.ts";
import { systemdUnit } from "./systemd/unit.ts";

/** Exit code of a program that a second Ctrl-C ended. */
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
  using log = createLogger(logOptions(flags));
  for (const warning of invocation.warnings) log.warn(warning);
  const machine = inspectMachine(process.env);
  try {
    checkPlatform(machine);
    const routes = machine.readText("/proc/net/route");
    const options = upOptions(flags, { hostname: hostname(), interfaces: networkInterfaces(), routes });
    return await runCluster(options, { machine, clock: systemClock, random: systemRandom, log, version });
  } catch (error) {
    // These say all there is to say; anything else is reported with its causes.
    if (error instanceof HostError) process.stderr.write(`${error.message}\n`);
    else log.error("Cannot run svc up", error);
    return 1;
  }
}

async function runCluster(options: UpOptions, deps: ClusterDeps): Promise<number> {
  const { clock, log } = deps;
  const controllers = expandControllerNames(options.controllers);
  const began = clock.monotonic();
  using _memory = collectGarbageWhenIdle({ clock });
  await using notifier = createNotifier({ env: process.env, clock, log });
  const signals = new StopSignals(log);
  try {
    // Help and the unit are printed without loading the server and the agent.
    const { startCluster } = await import("./cluster.ts");
    const starting = startCluster(options, deps, signals.abortSignal);
    const cluster = await Promise.race([starting, signals.second]).catch((error: unknown) => {
      if (error === signals.abortSignal.reason) return "stopped" as const;
      throw error;
    });
    if (cluster === "stopped") return 0;
    if (cluster === undefined) return INTERRUPTED;
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

/** For other machines where it is reachable from there, else where it is reachable at all. */
function advertisedUrl(options: UpOptions): string {
  const wildcard = ["0.0.0.0", "::", ""].includes(options.bindAddress);
  return `https://${bracketAddress(wildcard ? options.nodeIps[0]! : options.bindAddress)}:${options.securePort}`;
}

function bracketAddress(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}

/** The first SIGINT or SIGTERM asks for a clean stop, the second for an end at once. */
class StopSignals implements Disposable {
  readonly #first = new AbortController();
  readonly #second = Promise.withResolvers<undefined>();
  readonly #log: Logger;
  #count = 0;
  readonly #onSignal = (signal: NodeJS.Signals): void => {
    this.#count++;
    this.#log.info(this.#count === 1 ? "Stopping; the same again ends at once" : "Ending at once", { signal });
    this.#first.abort();
    if (this.#count > 1) this.#second.resolve(undefined);
  };

  constructor(log: Logger) {
    this.#log = log;
    process.on("SIGINT", this.#onSignal).on("SIGTERM", this.#onSignal);
  }

  /** Aborts with the first. */
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

/** This very command line without the flag that asked for the unit. The executable that brings Node.js is its own. */
function buildUnitCommand(argv: readonly string[]): readonly string[] {
  const flags = argv.filter((word) => !/^--?print[-_]systemd[-_]unit(?:=.*)?$/.test(word));
  const script = process.argv[1] ?? "";
  const isScript = script !== "" && script !== process.execPath;
  // The single file starts Node by itself; it is to find the one that runs now.
  const single = isScript && process.execArgv.includes("-e");
  const program = single ? ["/usr/bin/env", `SVC_NODE=${process.execPath}`, script] : [process.execPath];
  return [...program, ...(isScript && !single ? [...process.execArgv, script] : []), "up", ...flags];
}
