/** Splits an expression into tokens. */
import { scanStringLiteral } from "./string-literal.ts";

export type TokenKind = "NUM_FLOAT" | "NUM_INT" | "NUM_UINT" | "STRING" | "BYTES" | "IDENTIFIER" | "ESC_IDENTIFIER";

export interface Token {
  /** A `TokenKind`, or the text itself for operators and keywords; `<EOF>` at the end. */
  readonly kind: string;
  readonly text: string;
  readonly offset: number;
  /** The value of a string or bytes literal. */
  readonly value?: string | Uint8Array;
}

/** An error at a source position. */
export class SyntaxIssue {
  readonly message: string;
  readonly offset: number;

  constructor(message: string, offset: number) {
    this.message = message;
    this.offset = offset;
  }
}

const blank = /(?:[\t \r\n\f]|\/\/[^\n]*)*/y;
const number = /0x[0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+[uU]?/y;
const name = /[A-Za-z_][A-Za-z0-9_]*/y;
const escapedName = /`[A-Za-z0-9_.\-/ ]+`/y;
const stringStart = /(?:[bB][rR]?|[rR])?(?:"""|'''|"|')/y;
const operators = ["==", "!=", "<=", ">=", "&&", "||"];
const single = "<>[]{}().,-!?:+*/%";
const keywords = new Set(["in", "true", "false", "null"]);

/** Reports and skips text that is not a token. */
export function tokenize(source: string, issues: SyntaxIssue[]): readonly Token[] {
  const tokens: Token[] = [];
  let at = skip(source, 0);
  while (at < source.length) {
    const token = tokenAt(source, at);
    if (typeof token === "string") issues.push(unrecognized(token, at));
    else tokens.push(token);
    at = skip(source, at + (typeof token === "string" ? token : token.text).length);
  }
  tokens.push({ kind: "<EOF>", text: "<EOF>", offset: source.length });
  return tokens;
}

function unrecognized(text: string, offset: number): SyntaxIssue {
  return new SyntaxIssue(`Syntax error: token recognition error at: '${text}'`, offset);
}

function skip(source: string, at: number): number {
  blank.lastIndex = at;
  blank.test(source);
  return blank.lastIndex;
}

/** The token at the offset, or the text that is not a token. */
function tokenAt(source: string, offset: number): Token | string {
  const quote = match(stringStart, source, offset);
  if (quote !== undefined) return stringToken(source, offset, quote);
  const word = match(name, source, offset);
  if (word !== undefined) return { kind: keywords.has(word) ? word : "IDENTIFIER", text: word, offset };
  const digits = match(number, source, offset);
  if (digits !== undefined) return { kind: numberKind(digits), text: digits, offset };
  const escaped = match(escapedName, source, offset);
  if (escaped !== undefined) return { kind: "ESC_IDENTIFIER", text: escaped, offset };
  const pair = source.slice(offset, offset + 2);
  if (operators.includes(pair)) return { kind: pair, text: pair, offset };
  const letter = pair[0] ?? "";
  if (single.includes(letter)) return { kind: letter, text: letter, offset };
  // An incomplete operator is reported with the next character, as in cel-go.
  return "|&=".includes(letter) ? pair : String.fromCodePoint(source.codePointAt(offset) ?? 0);
}

function numberKind(text: string): TokenKind {
  if (/[uU]$/.test(text)) return "NUM_UINT";
  return !text.startsWith("0x") && /[.eE]/.test(text) ? "NUM_FLOAT" : "NUM_INT";
}

function stringToken(source: string, offset: number, start: string): Token | string {
  const literal = scanStringLiteral(source, offset, start);
  if (typeof literal === "string") return literal;
  const kind = /^[bB]/.test(start) ? "BYTES" : "STRING";
  return { kind, text: source.slice(offset, literal.end), offset, value: literal.value };
}

function match(pattern: RegExp, source: string, offset: number): string | undefined {
  pattern.lastIndex = offset;
  return pattern.exec(source)?.[0];
}
