/** `svc completion SHELL`: prints a script that completes commands and flags. */

import { completionScript, type Shell, shells } from "../../flags/completion.ts";
import { requestsHelp } from "../../flags/parse.ts";
import { programs } from "./programs.ts";

export async function run(argv: readonly string[]): Promise<number> {
  if (requestsHelp(argv)) {
    process.stdout.write(`Usage: svc completion ${shells.join("|")}\n`);
    return 0;
  }
  const shell = shells.find((name): name is Shell => name === argv[0]);
  if (shell === undefined || argv.length !== 1) {
    const problem = argv.length === 0 ? "a shell is missing" : `unknown shell ${JSON.stringify(argv.join(" "))}`;
    process.stderr.write(`svc completion: ${problem}; allowed: ${shells.join(", ")}\n`);
    return 1;
  }
  process.stdout.write(completionScript(shell, programs));
  return 0;
}
