/** The program of a worker thread: an API server over the stores of the main thread. */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { createLogger } from "../../std/log/logger.ts";
import { collectGarbageWhenIdle } from "../../std/memory/collect-when-idle.ts";
import { systemClock } from "../../std/time/clock.ts";
import type { ToWorker, WorkerStart } from "./messages.ts";
import { PoolLink } from "./pool-link.ts";
import { startWorkerServer, type WorkerServer } from "./worker-server.ts";

/** Resolves with the exit code of the thread. */
export async function run(): Promise<number> {
  if (parentPort === null) {
    process.stderr.write("svc: this command runs in a thread of svc apiserver only\n");
    return 1;
  }
  const port: MessagePort = parentPort;
  const { index, config, log: logOptions, hostName } = workerData as WorkerStart;
  using root = createLogger(logOptions);
  const log = root.child("svc", { worker: index });
  const link = new PoolLink(port, systemClock);
  let server: WorkerServer | undefined;
  using _memory = collectGarbageWhenIdle({ clock: systemClock, onIdle: () => server?.releaseMemory() });
  port.on("message", (message: ToWorker) => {
    if (message.type === "verbosity") root.setVerbosity(message.level);
    else link.handle(message);
  });
  const setVerbosity = (level: number): void => {
    root.setVerbosity(level);
    link.send({ type: "verbosity", level });
  };
  link.reportStep("loaded");
  try {
    await Promise.race([link.opened, link.stopped]);
    if (link.isStopped) return 0;
    server = await startWorkerServer(config, { clock: systemClock, log, setVerbosity, threads: link, hostName }, link);
    await link.stopped;
    await server.close();
    return 0;
  } catch (error) {
    if (link.isStopped) return 0;
    log.error("A worker of the API server cannot run", error);
    link.send({ type: "failed", message: error instanceof Error ? error.message : String(error) });
    return 1;
  } finally {
    port.close();
  }
}
