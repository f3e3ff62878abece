/** Parses `svc agent …` to an effective configuration, or to text to print before exit. */
import { FlagError } from "../../flags/flag.ts";
import { requestsHelp } from "../../flags/parse.ts";
import { type Environment, type Exit, errorText, helpText, reportedVersion, versionText } from "../../flags/program.ts";
import { agentProgram } from "../flags.ts";
import { toAgentConfig } from "../options.ts";
import { type EffectiveConfig, loadAgentConfig } from "./load.ts";
import { printConfig } from "./print.ts";

export interface AgentInvocation {
  readonly kind: "run";
  readonly effective: EffectiveConfig;
  /** `v1.33.0`, or the version set with `--version=v…`. */
  readonly version: string;
}

/** Does not throw for errors on the command line or in files. */
export function parseAgentCommandLine(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  surroundings: Environment,
): AgentInvocation | Exit {
  const exit = (code: number, stdout: string, stderr = ""): Exit => ({ kind: "exit", code, stdout, stderr });
  if (requestsHelp(argv)) return exit(0, helpText(agentProgram, surroundings.columns));
  try {
    const effective = loadAgentConfig(argv, env);
    const { flags, warnings } = effective;
    const printed = versionText(agentProgram.name, flags.version, surroundings.version);
    if (printed !== undefined) return exit(0, printed);
    const refusal = findRefusal(effective);
    if (refusal !== undefined) return exit(1, "", errorText(agentProgram.name, new FlagError([refusal])));
    if (flags["dry-run-config"]) return exit(0, printConfig(effective), warnings.map((line) => `${line}\n`).join(""));
    return { kind: "run", effective, version: reportedVersion(flags.version, surroundings.version) };
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    return exit(1, "", errorText(agentProgram.name, error));
  }
}

/** Why the start would refuse the values, which a dry run reports as well; undefined when it would not. */
function findRefusal(effective: EffectiveConfig): string | undefined {
  try {
    toAgentConfig(effective);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
