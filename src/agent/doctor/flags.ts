/** The flags of doctor, beside those of the program that it checks. */
import { type FlagTable, flag, type ParsedFlags, section } from "../../flags/flag.ts";
import { parseCommandLine } from "../../flags/parse.ts";
import { duration } from "../../flags/types/duration.ts";
import { bool, oneOf } from "../../flags/types/text.ts";

export const doctorFlags = section("Diagnosis", {
  output: flag(oneOf("text", "json"), "text", "Format of the findings.", { short: "o" }),
  verbose: flag(bool, false, "Print what is ok too; -v without a number does the same."),
  timeout: flag(duration({ min: 1 }), 10_000, "Longest time of a check; the checks run in parallel."),
});

/** `checked`: the program that would run. */
export function summaryOf(checked: string): string {
  return (
    `Finds what would stop ${checked} with the same flags, or its pods, on this machine, and describes what to do. ` +
    "Nothing is changed. The exit status is 0 when all is ok, 1 with warnings, 2 with errors."
  );
}

export interface DoctorCommandLine {
  readonly flags: ParsedFlags<typeof doctorFlags>;
  /** The words for the program that is checked. */
  readonly rest: readonly string[];
}

/** Throws `FlagError`. `table` has the flags of the program that is checked. */
export function parseDoctorFlags(argv: readonly string[], table: FlagTable): DoctorCommandLine {
  const own: string[] = [];
  const rest: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index]!;
    const next = argv[index + 1];
    if (word === "-v" && !/^\d+$/.test(next ?? "")) own.push("--verbose");
    else if (!isOwn(word)) {
      rest.push(word);
      // The value of a flag is no flag of doctor.
      if (takesNext(word, table) && next !== undefined) rest.push(argv[++index]!);
    } else {
      own.push(word);
      if (!word.includes("=") && !word.startsWith("--verbose") && next !== undefined) own.push(argv[++index]!);
    }
  }
  return { flags: parseCommandLine(doctorFlags, own).values, rest };
}

function isOwn(word: string): boolean {
  return /^(?:--(?:output|verbose|timeout)|-o)(?:=|$)/.test(word);
}

function takesNext(word: string, table: FlagTable): boolean {
  const name = /^--([\w-]+)$/.exec(word)?.[1]?.replaceAll("_", "-") ?? "";
  return Object.hasOwn(table, name) && table[name]?.type.bare === undefined;
}
