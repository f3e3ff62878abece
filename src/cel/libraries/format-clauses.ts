/** The clauses of a format: `%s`, `%.3f`. */
import { fail } from "../values/value.ts";

export type ClauseLetter = "s" | "d" | "f" | "e" | "b" | "x" | "X" | "o";

export interface Clause {
  readonly letter: ClauseLetter;
  readonly precision: number | undefined;
}

const LETTERS: ReadonlySet<string> = new Set("sdfebxXo");
const PRECISION_MAX = 1000;
const INT_MAX = 2n ** 63n - 1n;

export interface FormatArguments {
  readonly size: number;
  /** Whether the clause is read before it is known that the argument exists. */
  readonly late: boolean;
}

/**
 * Replaces the clauses of a format by what `replace` returns for them, with the index of their argument. Fails with
 * cel-go's messages.
 */
export function replaceClauses(
  format: string,
  args: FormatArguments,
  replace: (clause: Clause, index: number) => string,
): { readonly text: string; readonly count: number } {
  let text = "";
  let count = 0;
  let at = 0;
  while (at < format.length) {
    const start = format.indexOf("%", at);
    if (start < 0) break;
    text += format.slice(at, start);
    if (format[start + 1] === "%") {
      text += "%";
      at = start + 2;
      continue;
    }
    if (!args.late) checkIndex(count, args.size);
    if (start + 1 >= format.length) return fail("unexpected end of string");
    if (args.late) checkIndex(count, args.size);
    const { clause, end } = readClause(format, start + 1);
    text += replace(clause, count++);
    at = end;
  }
  return { text: text + format.slice(at), count };
}

function checkIndex(index: number, size: number): void {
  if (index >= size) fail(`index ${index} out of range`);
}

function readClause(format: string, start: number): { readonly clause: Clause; readonly end: number } {
  let at = start;
  let precision: number | undefined;
  if (format[at] === ".") {
    const digits = /^\d*/.exec(format.slice(at + 1))![0];
    at += 1 + digits.length;
    if (at >= format.length)
      return failParsing("error while parsing precision: could not find end of precision specifier");
    precision = parsePrecision(digits);
  }
  const letter = String.fromCodePoint(format.codePointAt(at)!);
  if (!LETTERS.has(letter)) {
    // The first byte only.
    return failParsing(`unrecognized formatting clause "${String.fromCodePoint(Buffer.from(letter)[0]!)}"`);
  }
  return { clause: { letter: letter as ClauseLetter, precision }, end: at + 1 };
}

function parsePrecision(digits: string): number {
  const problem = digits === "" ? "invalid syntax" : BigInt(digits) > INT_MAX ? "value out of range" : undefined;
  if (problem !== undefined) {
    const cause = `strconv.Atoi: parsing "${digits}": ${problem}`;
    return failParsing(`error while parsing precision: error while converting precision to integer: ${cause}`);
  }
  const precision = Number(digits);
  // Not in cel-go: bounds the length of the text.
  return precision > PRECISION_MAX ? fail(`precision too large: ${digits}`) : precision;
}

function failParsing(reason: string): never {
  return fail(`could not parse formatting clause: ${reason}`);
}

const ACCEPTED: Readonly<Record<ClauseLetter, string>> = {
  s: "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
  d: "decimal clause can only be used on integers",
  f: "fixed-point clause can only be used on doubles",
  e: "scientific clause can only be used on doubles",
  b: "only integers and bools can be formatted as binary",
  x: "only integers, byte buffers, and strings can be formatted as hex",
  X: "only integers, byte buffers, and strings can be formatted as hex",
  o: "octal clause can only be used on integers",
};

/** The message for an argument of another type than the clause accepts. */
export function describeMismatch(letter: ClauseLetter, type: string): string {
  return `error during formatting: ${ACCEPTED[letter]}, was given ${type}`;
}
