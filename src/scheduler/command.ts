/** `svc scheduler`, also invoked as `kube-scheduler`. */
import { runProgram } from "../component/run-program.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { schedulerProgram } from "./flags.ts";
import { schedulerOptions } from "./options.ts";
import { PROGRAM, runElectedScheduler } from "./run.ts";

/** Resolves with the exit code: 1 also when leadership is lost, so that the program is started again. */
export async function run(argv: readonly string[]): Promise<number> {
  return await runProgram(
    {
      name: PROGRAM,
      program: schedulerProgram,
      common: (flags) => flags,
      async prepare(flags, gates) {
        const options = schedulerOptions(flags, gates);
        const resourceMetrics = new MetricRegistry();
        return {
          connection: options.connection,
          resourceMetrics,
          start: (deps, signal) => runElectedScheduler(options, { ...deps, resourceMetrics }, signal),
        };
      },
    },
    argv,
  );
}
