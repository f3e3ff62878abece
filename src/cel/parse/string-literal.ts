/** String and bytes literals: single or triple quotes, raw strings, escapes. */

export interface StringLiteral {
  readonly value: string | Uint8Array;
  /** The offset after the closing quotes. */
  readonly end: number;
}

const simpleEscapes: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  '"': '"',
  "'": "'",
  "\\": "\\",
  "?": "?",
  "`": "`",
};
const numericEscape = /\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))/y;

/** The literal at `offset` with the prefix and quotes `start`, or the text up to the error. */
export function scanStringLiteral(source: string, offset: number, start: string): StringLiteral | string {
  const quotes = /["']+$/.exec(start)?.[0] ?? '"';
  const prefix = start.slice(0, -quotes.length).toLowerCase();
  const from = offset + start.length;
  const close = findClosingQuotes(source, from, quotes, prefix.includes("r"));
  if (typeof close !== "number") return source.slice(offset, close.errorEnd);
  const end = close + quotes.length;
  const raw = source.slice(from, close);
  // Multi-line literals have normalized line ends.
  const body = quotes.length === 3 || raw.includes("\r") ? raw.replaceAll(/\r\n?/g, "\n") : raw;
  const bytes = prefix.includes("b");
  if (prefix.includes("r") || !body.includes("\\")) {
    return { value: bytes ? new TextEncoder().encode(body) : body, end };
  }
  const value = bytes ? unescapeBytes(body) : unescapeText(body);
  return value === undefined ? source.slice(offset, end) : { value, end };
}

/** The text up to this offset is no token. */
interface Unclosed {
  readonly errorEnd: number;
}

/** The offset of the closing quotes, unless they are missing or an escape is invalid. */
function findClosingQuotes(source: string, from: number, quotes: string, raw: boolean): number | Unclosed {
  let at = from;
  while (at < source.length) {
    if (source.startsWith(quotes, at)) return at;
    const letter = source[at];
    if (quotes.length === 1 && (letter === "\n" || letter === "\r")) break;
    if (letter !== "\\" || raw) {
      at++;
      continue;
    }
    const length = escapeLength(source, at);
    if (length === 0)
      return { errorEnd: quotes.length === 1 ? findEscapeError(source, at) : findLineEnd(source, from) };
    at += length;
  }
  return { errorEnd: findLineEnd(source, from) };
}

const partialEscape = /\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?/y;

/** The end of the first character that no escape has there. */
function findEscapeError(source: string, at: number): number {
  partialEscape.lastIndex = at;
  const valid = partialEscape.exec(source)?.[0].length ?? 1;
  return Math.min(at + valid + 1, source.length);
}

function escapeLength(source: string, at: number): number {
  if (simpleEscapes[source[at + 1] ?? ""] !== undefined) return 2;
  numericEscape.lastIndex = at;
  return numericEscape.exec(source)?.[0].length ?? 0;
}

function findLineEnd(source: string, offset: number): number {
  const end = source.indexOf("\n", offset);
  return end < 0 ? source.length : end;
}

interface Escape {
  readonly length: number;
  readonly code: number;
  /** `\u` and `\U` escape a character and not a byte. */
  readonly character: boolean;
}

function parseEscape(body: string, at: number): Escape {
  const simple = simpleEscapes[body[at + 1] ?? ""];
  if (simple !== undefined) return { length: 2, code: simple.charCodeAt(0), character: false };
  numericEscape.lastIndex = at;
  const [text = "", hex, short, long, octal] = numericEscape.exec(body) ?? [];
  const digits = hex ?? short ?? long;
  const code = digits === undefined ? Number.parseInt(octal ?? "0", 8) : Number.parseInt(digits, 16);
  return { length: text.length, code, character: short !== undefined || long !== undefined };
}

function unescapeText(body: string): string | undefined {
  let text = "";
  let at = 0;
  while (at < body.length) {
    if (body[at] !== "\\") {
      text += body[at++];
      continue;
    }
    const { length, code } = parseEscape(body, at);
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return undefined;
    text += String.fromCodePoint(code);
    at += length;
  }
  return text;
}

function unescapeBytes(body: string): Uint8Array | undefined {
  const bytes: number[] = [];
  const encoder = new TextEncoder();
  let at = 0;
  while (at < body.length) {
    if (body[at] !== "\\") {
      const letter = String.fromCodePoint(body.codePointAt(at) ?? 0);
      bytes.push(...encoder.encode(letter));
      at += letter.length;
      continue;
    }
    const { length, code, character } = parseEscape(body, at);
    // `\u` and `\U` are invalid in bytes literals.
    if (character) return undefined;
    bytes.push(code);
    at += length;
  }
  return Uint8Array.from(bytes);
}
