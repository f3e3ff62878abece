/** `svc apiserver config check FILE…`. */
import { checkFile } from "./check-files.ts";
import type { FileKind } from "./file-kinds.ts";
import { formatProblem } from "./problem.ts";

const USAGE = `Usage: svc apiserver config check FILE...

Checks configuration files without starting anything, and prints each mistake as

  file:line:column: field: what is wrong; what would be right

Checked are the configurations of admission, authentication, authorization, audit,
egress, encryption and tracing, those of the agent, of its credential providers and
of the scheduler, manifests of static pods, kubeconfig files (of webhooks as well),
ABAC policies and static tokens. Files that a configuration names are read, too.

The exit code is 1 when a file has a mistake.
`;

export interface CommandOutput {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** `more` loads the kinds of files of other programs. */
export async function runConfigCheck(
  argv: readonly string[],
  more: () => Promise<readonly FileKind[]> = async () => [],
): Promise<CommandOutput> {
  const flag = argv.find((word) => word.startsWith("-") && word !== "--");
  if (flag === "-h" || flag === "--help") return { stdout: USAGE, stderr: "", code: 0 };
  const files = argv.filter((word) => word !== "--");
  if (flag !== undefined) return { stdout: "", stderr: `unknown flag ${flag}\n${USAGE}`, code: 1 };
  if (files.length === 0) return { stdout: "", stderr: `no file was named\n${USAGE}`, code: 1 };
  const kinds = await more();
  let stdout = "";
  let isValid = true;
  for (const file of files) {
    const { kind, problems } = await checkFile(file, kinds);
    if (problems.length === 0) stdout += `${file}: valid ${kind}\n`;
    else isValid = false;
    for (const problem of problems) stdout += `${formatProblem(problem)}\n`;
  }
  return { stdout, stderr: "", code: isValid ? 0 : 1 };
}
