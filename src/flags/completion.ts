/** Renders completion scripts for bash, zsh and fish from the tables. */
import type { Flag, FlagTable } from "./flag.ts";

export interface CompletedProgram {
  /** The first word after `svc`: `agent`. */
  readonly word: string;
  readonly summary: string;
  /** Commands of the program, in front of the flags. */
  readonly verbs?: readonly string[];
  readonly flags: FlagTable;
}

export type Shell = "bash" | "zsh" | "fish";

export const shells: readonly Shell[] = ["bash", "zsh", "fish"];

/** Commands without flags. */
const plainWords: readonly (readonly [string, string])[] = [
  ["licenses", "Print the licenses of the software in this file"],
  ["version", "Print the version"],
  ["completion", "Print a shell completion script"],
];

/** A script that completes `svc`, and `svclet` as the agent. */
export function completionScript(shell: Shell, programs: readonly CompletedProgram[]): string {
  switch (shell) {
    case "bash":
      return bash(programs);
    case "zsh":
      return zsh(programs);
    case "fish":
      return fish(programs);
    default:
      return shell satisfies never;
  }
}

function words(programs: readonly CompletedProgram[]): string[] {
  return [...programs.map(({ word }) => word), ...plainWords.map(([word]) => word)];
}

/** `--port=` for flags that need a value, `--profiling` for others. */
function option(name: string, row: Flag): string {
  return `--${name}${row.type.bare === undefined ? "=" : ""}`;
}

function bash(programs: readonly CompletedProgram[]): string {
  const options = programs.map(({ word, verbs = [], flags }) => {
    const all = [...verbs, ...Object.entries(flags).map(([name, row]) => option(name, row))];
    return `    ${word}) words="${all.join(" ")}" ;;`;
  });
  const values = programs.flatMap(({ word, flags }) =>
    Object.entries(flags).flatMap(([name, row]) => {
      const { choices, path } = row.type;
      if (choices !== undefined) return [`    ${word}:--${name}) words="${choices.join(" ")}" ;;`];
      if (path === undefined) return [];
      return [`    ${word}:--${name}) COMPREPLY=($(compgen -${path === "file" ? "f" : "d"} -- "$current")); return ;;`];
    }),
  );
  return `# bash completion for svc
_svc() {
  local current flag="" program words=""
  current="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  case "\${COMP_WORDS[0]##*/}" in
    svclet) program=agent ;;
    *) program="\${COMP_WORDS[1]}" ;;
  esac
  if [[ "\${COMP_WORDS[0]##*/}" != svclet && $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W "${words(programs).join(" ")}" -- "$current"))
    return
  fi
  if [[ "$current" == "=" ]]; then
    flag="\${COMP_WORDS[COMP_CWORD-1]}"
    current=""
  elif [[ "\${COMP_WORDS[COMP_CWORD-1]}" == "=" ]]; then
    flag="\${COMP_WORDS[COMP_CWORD-2]}"
  elif [[ "$current" != -* && "\${COMP_WORDS[COMP_CWORD-1]}" == --* ]]; then
    flag="\${COMP_WORDS[COMP_CWORD-1]}"
  fi
  case "$program:$flag" in
${values.join("\n")}
    completion:) words="${shells.join(" ")}" ;;
  esac
  if [[ -z "$flag" ]]; then
    case "$program" in
${options.join("\n")}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ "\${COMPREPLY[0]}" == *= ]] && compopt -o nospace
}
complete -F _svc svc svclet
`;
}

function zsh(programs: readonly CompletedProgram[]): string {
  const described = [...programs.map(({ word, summary }) => [word, summary] as const), ...plainWords];
  const cases = programs.map(({ word, verbs = [], flags }) => {
    const verb = verbs.length === 0 ? [] : [`      ${singleQuoted(`1:verb:(${verbs.join(" ")})`)}`];
    const specs = Object.entries(flags).map(([name, row]) => `      ${singleQuoted(zshSpec(name, row))}`);
    return `    ${word}) _arguments \\\n${[...verb, ...specs].join(" \\\n")} ;;`;
  });
  return `#compdef svc svclet
# zsh completion for svc
_svc() {
  local program
  if [[ "\${words[1]:t}" == svclet ]]; then
    program=agent
  elif (( CURRENT == 2 )); then
    local -a programs=(${described.map(([word, summary]) => singleQuoted(`${word}:${summary}`)).join(" ")})
    _describe program programs
    return
  else
    program="\${words[2]}"
    shift words
    (( CURRENT -= 1 ))
  fi
  case "$program" in
${cases.join("\n")}
    completion) _values shell ${shells.join(" ")} ;;
  esac
}
compdef _svc svc svclet
`;
}

function zshSpec(name: string, row: Flag): string {
  const meaning = firstSentence(row.meaning).replace(/[[\]:]/g, " ");
  const { choices, path, bare } = row.type;
  const action =
    choices !== undefined ? `(${choices.join(" ")})` : path === "file" ? "_files" : path ? "_files -/" : " ";
  return `--${name}${bare === undefined ? "=" : "=-"}[${meaning}]${bare === undefined ? ":" : "::"}value:${action}`;
}

function fish(programs: readonly CompletedProgram[]): string {
  const described = [...programs.map(({ word, summary }) => [word, summary] as const), ...plainWords];
  const lines = described.map(
    ([word, summary]) => `complete -c svc -n __fish_use_subcommand -f -a ${word} -d ${singleQuoted(summary)}`,
  );
  lines.push(`complete -c svc -n "__fish_seen_subcommand_from completion" -f -a "${shells.join(" ")}"`);
  for (const { word, verbs = [], flags } of programs) {
    if (verbs.length > 0)
      lines.push(`complete -c svc -n "__fish_seen_subcommand_from ${word}" -f -a "${verbs.join(" ")}"`);
    for (const [name, row] of Object.entries(flags)) {
      lines.push(`complete -c svc -n "__fish_seen_subcommand_from ${word}" ${fishOption(name, row)}`);
      if (word === "agent") lines.push(`complete -c svclet ${fishOption(name, row)}`);
    }
  }
  return `# fish completion for svc\n${lines.join("\n")}\n`;
}

function fishOption(name: string, row: Flag): string {
  const { choices, path, bare } = row.type;
  const short = row.short === undefined || row.short === name ? "" : ` -s ${row.short}`;
  const long = name.length === 1 ? `-s ${name}` : `-l ${name}`;
  const needsValue = bare === undefined ? (path === undefined ? " -x" : " -r") : "";
  const list = choices === undefined ? "" : ` -a ${singleQuoted(choices.join(" "))}`;
  return `${long}${short}${needsValue}${list} -d ${singleQuoted(firstSentence(row.meaning))}`;
}

function firstSentence(text: string): string {
  return /^(.*?[.;:])(\s|$)/.exec(text)?.[1]?.slice(0, -1) ?? text;
}

/** A word of a shell; single quotes inside become `'\''`. */
function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
