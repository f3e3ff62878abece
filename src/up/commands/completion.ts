/** `svc completion SHELL`: prints a script that completes commands and flags. */
import { completionScript, type Shell, shells } from "../../flags/completion.ts";
import { programs } from "./programs.ts";

export async function run(argv: readonly string[]): Promise<number> {
  const shell = shells.find((name): name is Shell => name === argv[0]);
  if (shell === undefined || argv.length !== 1) {
    const given = argv.length === 0 ? "no shell named" : `unknown shell ${JSON.stringify(argv.join(" "))}`;
    process.stderr.write(`svc completion: ${given}; allowed: ${shells.join(", ")}\n`);
    return 1;
  }
  process.stdout.write(completionScript(shell, programs));
  return 0;
}
