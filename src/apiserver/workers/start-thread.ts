/** Starts a thread with the program of this process. */
import { Worker, type WorkerOptions } from "node:worker_threads";

/** In the single file: its program without the parts that are loaded later. */
declare const SVC_MAIN: (() => { readonly code: string; readonly file: string }) | undefined;

/** `words` are the command line of the thread. */
export function startThread(words: readonly string[], options: WorkerOptions): Worker {
  if (typeof SVC_MAIN === "undefined") return new Worker(MAIN, { ...options, argv: [...words], execArgv: [] });
  const { code, file } = SVC_MAIN();
  return new Worker(loader(code, file), { ...options, eval: true, argv: [...words], execArgv: [] });
}

const MAIN = new URL("../../main.ts", import.meta.url);

/** Compiles the program under the name of its file, as the start of the process does. */
function loader(code: string, file: string): string {
  return `
process.argv[1] = ${JSON.stringify(file)};
const run = require("vm").compileFunction(
  ${JSON.stringify(code)},
  ["require", "module", "exports", "__filename", "__dirname"],
  { filename: ${JSON.stringify(file)} },
);
run(require, module, exports, ${JSON.stringify(file)}, require("path").dirname(${JSON.stringify(file)}));`;
}
