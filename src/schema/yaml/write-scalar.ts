/**
 * Writes YAML scalars as Go's library does: plain where the text reads back as itself, else in quotes or as a literal
 * block, and folded at spaces where a line exceeds the width.
 */

/** Where a scalar stands. */
export interface ScalarPlace {
  /** The column of its first character. */
  readonly column: number;
  /** The indentation of further lines. */
  readonly indent: number;
  /** A longer line is folded. */
  readonly width: number;
  /** A key has one line. */
  readonly isKey: boolean;
}

const WORDS: ReadonlySet<string> = new Set([
  "",
  "~",
  ...["y", "Y", "n", "N"],
  ...["yes", "no", "on", "off", "true", "false", "null"].flatMap((word) => [
    word,
    word.toUpperCase(),
    `${word[0]!.toUpperCase()}${word.slice(1)}`,
  ]),
  ...["", "+", "-"].flatMap((sign) => [".inf", ".Inf", ".INF"].map((word) => sign + word)),
  ...[".nan", ".NaN", ".NAN"],
]);

const INTEGER = /^[-+]?(?:0[xX][\da-fA-F]+|0[bB][01]+|0[oO]?[0-7]*|[1-9]\d*)$/;
const REAL = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;
/** No number here, but one for other parsers. */
const BASE_60 = /^[-+]?\d[\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?$/;
const DATE = /^(\d{4})-(\d{1,2})-(\d{1,2})(.*)$/;
const CLOCK = /^(?:[Tt](?:\d{1,2}:){2}\d{1,2}(?:[.,]\d+)?(?:Z|[-+]\d\d:\d\d)| (?:\d{1,2}:){2}\d{1,2}(?:[.,]\d+)?)?$/;

/** Whether an unquoted text is a string. */
function readsAsText(text: string): boolean {
  if (WORDS.has(text)) return false;
  if (!/^[-+.\d]/.test(text)) return true;
  const dense = text.startsWith(".") ? text : text.replaceAll("_", "");
  const isNumber = INTEGER.test(dense) || (REAL.test(dense) && Number.isFinite(Number(dense)));
  return !isNumber && !BASE_60.test(text) && !isTime(text);
}

function isTime(text: string): boolean {
  const [, year, month, day, clock = ""] = DATE.exec(text) ?? [];
  if (year === undefined || !CLOCK.test(clock)) return false;
  return new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() === Number(day);
}

/** Characters that only double quotes can represent. */
const SPECIAL = /[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;
const INDICATORS = /^(?:[#,[\]{}&*!|>'"%@`]|[?:-](?:[ \t]|$)|---|\.\.\.)|:(?:[ \t]|$)|[ \t]#/;

export function writeScalar(text: string, place: ScalarPlace): string {
  const isSpecial = SPECIAL.test(text) || / \n/.test(text);
  if (text.includes("\n")) {
    const isLiteral = !place.isKey && !isSpecial && !text.endsWith(" ");
    return isLiteral ? literal(text, place) : doubleQuoted(text, place);
  }
  if (isSpecial || !readsAsText(text)) return doubleQuoted(text, place);
  const isPlain = !/^ | $/.test(text) && !INDICATORS.test(text);
  return isPlain ? fold(text, place, false) : `'${fold(text.replaceAll("'", "''"), shifted(place), true)}'`;
}

function shifted(place: ScalarPlace): ScalarPlace {
  return { ...place, column: place.column + 1 };
}

function literal(text: string, { indent }: ScalarPlace): string {
  const hint = /^[ \n]/.test(text) ? "2" : "";
  const chomp = !text.endsWith("\n") ? "-" : text === "\n" || text.endsWith("\n\n") ? "+" : "";
  const lines = (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
  const pad = " ".repeat(indent);
  return [`|${hint}${chomp}`, ...lines.map((line) => (line === "" ? "" : pad + line))].join("\n");
}

/** Replaces single spaces beyond the width by line breaks; in quotes not the first and the last character. */
function fold(text: string, { column, indent, width, isKey }: ScalarPlace, isQuoted: boolean): string {
  if (isKey || text.length <= width - column) return text;
  let result = "";
  let at = column;
  let afterSpace = false;
  for (let i = 0; i < text.length; ) {
    const character = String.fromCodePoint(text.codePointAt(i)!);
    const isSpace = character === " ";
    const isInside = !isQuoted || (i > 0 && i < text.length - 1);
    if (isSpace && !afterSpace && at > width && isInside && text[i + 1] !== " ") {
      result += `\n${" ".repeat(indent)}`;
      at = indent;
    } else {
      result += character;
      at++;
    }
    afterSpace = isSpace;
    i += character.length;
  }
  return result;
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\0": "0",
  "\x07": "a",
  "\b": "b",
  "\t": "t",
  "\n": "n",
  "\v": "v",
  "\f": "f",
  "\r": "r",
  "\x1b": "e",
  '"': '"',
  "\\": "\\",
  "\x85": "N",
  "\u2028": "L",
  "\u2029": "P",
};

function doubleQuoted(text: string, { column, indent, width, isKey }: ScalarPlace): string {
  let result = '"';
  let at = column + 1;
  let afterSpace = false;
  let first = true;
  const characters = [...text];
  for (const [i, character] of characters.entries()) {
    const next = characters[i + 1];
    if (character === " ") {
      if (!isKey && !afterSpace && at > width && !first && next !== undefined) {
        result += `\n${" ".repeat(indent)}${next === " " ? "\\" : ""}`;
        at = indent + (next === " " ? 1 : 0);
      } else {
        result += " ";
        at++;
      }
    } else {
      const escaped = escapeCharacter(character);
      result += escaped;
      at += escaped.length === character.length ? 1 : escaped.length;
    }
    afterSpace = character === " ";
    first = false;
  }
  return `${result}"`;
}

function escapeCharacter(character: string): string {
  const short = ESCAPES[character];
  if (short !== undefined) return `\\${short}`;
  if (!SPECIAL.test(character)) return character;
  const code = character.codePointAt(0)!;
  const digits = code.toString(16).toUpperCase();
  if (code <= 0xff) return `\\x${digits.padStart(2, "0")}`;
  return code <= 0xffff ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
}

/** A number in Go's shortest form: `1e-05`, `1.5e+07`. */
export function writeNumber(value: number | bigint): string {
  if (typeof value === "bigint") return value.toString();
  if (Number.isInteger(value) && Math.abs(value) < 2 ** 64) return BigInt(value).toString();
  const [mantissa = "", exponent = ""] = value.toExponential().split("e");
  const power = Number(exponent);
  if (power >= -4 && power < 6) return String(value);
  const digits = String(Math.abs(power)).padStart(2, "0");
  return `${mantissa}e${power < 0 ? "-" : "+"}${digits}`;
}
