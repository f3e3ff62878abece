/** `svc agent doctor`: checks what the agent needs that the same flags would start. */
import { FlagError, type FlagTable } from "../../flags/flag.ts";
import { renderHelp } from "../../flags/help.ts";
import { requestsHelp } from "../../flags/parse.ts";
import { errorText } from "../../flags/program.ts";
import { systemClock } from "../../std/time/clock.ts";
import { KUBERNETES_VERSION } from "../../std/version.ts";
import { parseAgentCommandLine } from "../config/command-line.ts";
import { agentFlags } from "../flags.ts";
import { forecastSocket, readForecast } from "../forecast/forecast-socket.ts";
import { renderForecast } from "../forecast/render-forecast.ts";
import { toAgentConfig } from "../options.ts";
import { agentSubject } from "./agent-subject.ts";
import { diagnose } from "./doctor.ts";
import { doctorFlags, parseDoctorFlags, summaryOf } from "./flags.ts";
import { createHostReader } from "./host-reader.ts";
import { exitCode, renderJson, renderText } from "./report.ts";
import type { DoctorSubject } from "./subject.ts";

/** Of a command line or a configuration that cannot be used. */
const EXIT_INVALID = 2;

/** A program that is checked; `subject` throws a message for the operator. */
export interface DiagnosedProgram {
  /** `svc agent doctor` */
  readonly name: string;
  /** The program that has `flags`. */
  readonly checked: string;
  readonly flags: FlagTable;
  /** The subject, or text to print with its exit code. */
  subject(argv: readonly string[]): Promise<DoctorSubject | { readonly stdout: string; readonly stderr: string }>;
}

export const agentDoctor: DiagnosedProgram = {
  name: "svc agent doctor",
  checked: "svc agent",
  flags: agentFlags,
  async subject(argv) {
    const invocation = parseAgentCommandLine(argv, process.env, { version: KUBERNETES_VERSION });
    if (invocation.kind === "exit") return invocation;
    const { effective } = invocation;
    return await agentSubject(toAgentConfig(effective), effective.flags.join, effective.warnings);
  },
};

/** Resolves with the exit status. */
export async function runDoctor(program: DiagnosedProgram, argv: readonly string[]): Promise<number> {
  const { name, checked, flags: table } = program;
  if (requestsHelp(argv)) {
    const usage = `Usage:\n  ${name} [flags] [flags of ${checked}]`;
    const columns = process.stdout.columns;
    const help = renderHelp(doctorFlags, {
      name,
      summary: summaryOf(checked),
      usage,
      ...(columns === undefined ? {} : { columns }),
    });
    process.stdout.write(`${help}\n${checked} --help shows its flags.\n`);
    return 0;
  }
  try {
    const { flags, rest } = parseDoctorFlags(argv, table);
    const subject = await program.subject(rest);
    if ("stderr" in subject) {
      process.stdout.write(subject.stdout);
      process.stderr.write(subject.stderr);
      return subject.stderr === "" ? 0 : EXIT_INVALID;
    }
    const deps = { host: createHostReader(), clock: systemClock, timeoutMs: flags.timeout };
    const socket = forecastSocket(subject.config.rootDir);
    const [findings, forecast] = await Promise.all([
      diagnose(subject, deps),
      readForecast(socket, flags.timeout).catch(() => undefined),
    ]);
    const text =
      flags.output === "json"
        ? renderJson(subject.program, findings, forecast)
        : `${renderText(findings, flags.verbose)}${renderForecast(forecast)}`;
    process.stdout.write(text);
    return exitCode(findings);
  } catch (error) {
    const text = error instanceof FlagError ? errorText(name, error) : `${name}: ${(error as Error).message}\n`;
    process.stderr.write(text);
    return EXIT_INVALID;
  }
}

export function run(argv: readonly string[]): Promise<number> {
  return runDoctor(agentDoctor, argv);
}
