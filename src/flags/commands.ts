/**
 * The commands of a program, through yargs: selects the one that the words name, with its arguments, suggests one for a
 * misspelt word, and lists all. yargs takes 30 ms of CPU to load: programs import this file only when they need it.
 */
import yargs, { type Argv } from "yargs";
import { FlagError, type FlagTable, type ParsedFlags } from "./flag.ts";
import { helpColumns, renderHelp } from "./help.ts";
import { parseCommandLine, requestsHelp } from "./parse.ts";
import { type Exit, errorText } from "./program.ts";

export interface CommandUsage {
  /** The verb and its arguments, as yargs writes them: `suspend <name>`. */
  readonly command: string;
  readonly summary: string;
}

export interface SelectedCommand {
  /** `suspend` */
  readonly verb: string;
  /** The arguments by name. */
  readonly args: Readonly<Record<string, string>>;
}

/** A program whose first words name one of its commands; all commands have the same flags. */
export interface CommandProgram<T extends FlagTable> {
  /** `svc webhooks` */
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly CommandUsage[];
  readonly flags: T;
}

export interface CommandInvocation<T extends FlagTable> extends SelectedCommand {
  readonly kind: "run";
  readonly flags: ParsedFlags<T>;
}

/** Never throws for mistakes on the command line: they are an `Exit` with code 1. */
export async function invokeCommand<const T extends FlagTable>(
  program: CommandProgram<T>,
  argv: readonly string[],
  terminalColumns: number | undefined = process.stdout.columns,
): Promise<CommandInvocation<T> | Exit> {
  const { name, summary, commands, flags } = program;
  if (requestsHelp(argv)) {
    const columns = helpColumns(terminalColumns);
    const usage = await renderCommands(name, commands, columns);
    return { kind: "exit", code: 0, stdout: renderHelp(flags, { name, summary, columns, usage }), stderr: "" };
  }
  try {
    const { values, positionals } = parseCommandLine(flags, argv, { positional: true });
    return { kind: "run", flags: values, ...(await selectCommand(name, commands, positionals)) };
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    return { kind: "exit", code: 1, stdout: "", stderr: errorText(name, error) };
  }
}

/** The command that the words name; `words` contains no flags. Throws `FlagError` with one problem. */
export async function selectCommand(
  program: string,
  commands: readonly CommandUsage[],
  words: readonly string[],
): Promise<SelectedCommand> {
  let selected: SelectedCommand | undefined;
  let problem: string | undefined;
  const parser = createParser(program, commands, (verb, args) => {
    selected = { verb, args };
  })
    .recommendCommands()
    .strictCommands()
    .demandCommand(1, "a command is missing")
    .fail((message) => {
      problem ??= problemText(message, words[0] ?? "");
    });
  await parser.parseAsync([...words]);
  if (problem !== undefined || selected === undefined) throw new FlagError([problem ?? "a command is missing"]);
  return selected;
}

/** The usage line and the list of commands, wrapped to `columns`. */
export async function renderCommands(
  program: string,
  commands: readonly CommandUsage[],
  columns: number,
): Promise<string> {
  const help = await createParser(program, commands, () => {})
    .wrap(columns)
    .getHelp();
  return `${help}\n`;
}

/** yargs' message in the style of our own. */
function problemText(message: string, word: string): string {
  const suggestion = /^Did you mean (.*)\?$/.exec(message)?.[1];
  if (suggestion !== undefined) return `unknown command ${JSON.stringify(word)}; did you mean ${suggestion}?`;
  const unknown = /^Unknown commands?: (.*)$/.exec(message)?.[1];
  if (unknown !== undefined) return `unknown command ${JSON.stringify(unknown)}`;
  return `${message.slice(0, 1).toLowerCase()}${message.slice(1)}`;
}

function createParser(
  program: string,
  commands: readonly CommandUsage[],
  onSelect: (verb: string, args: Readonly<Record<string, string>>) => void,
): Argv {
  const parser = yargs()
    .scriptName(program)
    .usage("Usage: $0 COMMAND [flags]")
    .parserConfiguration({ "parse-numbers": false, "parse-positional-numbers": false })
    .detectLocale(false)
    .exitProcess(false)
    .help(false)
    .version(false);
  for (const { command, summary } of commands) {
    const [verb = ""] = command.split(" ");
    parser.command(command, summary, {}, ({ _, $0, ...args }) => onSelect(verb, args as Record<string, string>));
  }
  return parser;
}
