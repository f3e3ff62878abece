/** `svc controller-manager`, also invoked as `kube-controller-manager`. */
import { runProgram } from "../component/run-program.ts";
import { selectControllers } from "./controller-names.ts";
import { controllerManagerProgram } from "./flags.ts";
import { controllerManagerOptions } from "./options.ts";
import { PROGRAM, runControllerManager } from "./run.ts";

/** Resolves with the exit code: 1 also when leadership is lost, so that the program is started again. */
export async function run(argv: readonly string[]): Promise<number> {
  return await runProgram(
    {
      name: PROGRAM,
      program: controllerManagerProgram,
      common: (flags) => flags,
      warnings(flags, log) {
        for (const controller of selectControllers(flags.controllers).absent) {
          log.warn("This build has no such controller; --controllers ignores it", { controller });
        }
      },
      async prepare(flags, gates) {
        const options = controllerManagerOptions(flags, gates);
        return {
          connection: options.connection,
          start: (deps, signal) => runControllerManager(options, deps, signal),
        };
      },
    },
    argv,
  );
}
