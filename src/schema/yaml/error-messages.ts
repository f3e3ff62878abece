/** Translates js-yaml's errors to those of Go's YAML parser, which Kubernetes shows. */

interface GoMessage {
  readonly text: string;
  /** An error of the scanner: Go counts its line from one, and that of parser errors from zero. */
  readonly scanning: boolean;
}

const scanning = (text: string): GoMessage => ({ text, scanning: true });
const parsing = (text: string): GoMessage => ({ text, scanning: false });

const INCOMPATIBLE = "unacceptable YAML version of the document";

const GO_MESSAGES: Readonly<Record<string, GoMessage>> = {
  "can not read a block mapping entry; a multiline key may not be an implicit key":
    scanning("could not find expected ':'"),
  "expected ':' after a mapping key": scanning("could not find expected ':'"),
  "bad indentation of a sequence entry": parsing("did not find expected '-' indicator"),
  "expected the node content, but found ','": parsing("did not find expected node content"),
  "unexpected end of the stream within a double quoted scalar": scanning("found unexpected end of stream"),
  "unexpected end of the stream within a single quoted scalar": scanning("found unexpected end of stream"),
  "unexpected end of the document within a double quoted scalar": scanning("found unexpected document indicator"),
  "unexpected end of the document within a single quoted scalar": scanning("found unexpected document indicator"),
  "unknown escape sequence": scanning("found unknown escape character"),
  "expected hexadecimal character": scanning("did not find expected hexdecimal number"),
  "name of an alias node must contain at least one character": scanning(
    "did not find expected alphabetic or numeric character",
  ),
  "name of an anchor node must contain at least one character": scanning(
    "did not find expected alphabetic or numeric character",
  ),
  "duplication of %YAML directive": parsing("found duplicate %YAML directive"),
  "a line break is expected": scanning("did not find expected comment or line break"),
  "unexpected end of the stream within a verbatim tag": scanning("did not find the expected '>'"),
  [INCOMPATIBLE]: parsing("found incompatible YAML document"),
};

/** The error about a node after the first one, without a marker between them. */
export const NEXT_DOCUMENT = "did not find expected <document start>";

/** Errors without a line. */
const UNREADABLE_REASONS: ReadonlySet<string> = new Set([
  "the stream contains non-printable characters",
  "null byte is not allowed in input",
  "expected valid JSON character",
]);

/** Where an error is. */
interface Mark {
  /** Counted from zero. */
  readonly line: number;
  readonly position: number;
}

interface SourceLocation {
  readonly line: number;
  readonly column: number;
}

/** `yaml: line 3: could not find expected ':'` */
export function toGoErrorMessage(reason: string, { line, position }: Mark, text: string): string {
  if (UNREADABLE_REASONS.has(reason)) return "yaml: control characters are not allowed";
  const location = { line, column: position - (text.lastIndexOf("\n", position - 1) + 1) };
  const { text: message, scanning: fromOne } = goMessageOf(reason, location, text.split("\n"));
  // Go's parser counts the end of a text without a newline as a line of its own.
  if (!fromOne && position >= text.length && !text.endsWith("\n")) return `yaml: line ${line + 1}: ${message}`;
  // Go shows the line of the directive.
  if (reason === INCOMPATIBLE) return toGoErrorLine(line - 1, message);
  return toGoErrorLine(fromOne && line > 0 ? line + 1 : line, message);
}

/** Go does not name the first line. */
function toGoErrorLine(line: number, message: string): string {
  return line <= 0 ? `yaml: ${message}` : `yaml: line ${line}: ${message}`;
}

const NO_TOKEN = scanning("found character that cannot start any token");
const NO_VALUE = scanning("mapping values are not allowed in this context");
const NO_NODE = parsing("did not find expected node content");
const NO_KEY = parsing("did not find expected key");

function goMessageOf(reason: string, location: SourceLocation, lines: readonly string[]): GoMessage {
  if (reason.startsWith("tab characters")) return goMessageOfTab(lines, location.line);
  switch (reason) {
    case "bad indentation of a mapping entry":
      return goMessageOfToken(location, lines) ?? (isFirstOfLine(location, lines) ? NO_KEY : NO_VALUE);
    case "end of the stream or a document separator is expected":
      return goMessageOfToken(location, lines) ?? goMessageOfRoot(location, lines);
    case "deficient indentation":
    case "missed comma between flow collection entries":
    case "unexpected end of the stream within a flow collection": {
      const end = enclosingEnd(location, lines);
      // The text ends where a value is to follow.
      if (reason.startsWith("unexpected end") && /[[{,]\s*$/.test(lines.join("\n"))) return NO_NODE;
      if (end === "]" || end === "}") return parsing(`did not find expected ',' or '${end}'`);
      return end === undefined ? scanning(reason) : scanning("found unexpected end of stream");
    }
    default:
      return GO_MESSAGES[reason] ?? scanning(reason);
  }
}

/** The error about a character that cannot be here; undefined for others. */
function goMessageOfToken({ line, column }: SourceLocation, lines: readonly string[]): GoMessage | undefined {
  const text = lines[line] ?? "";
  const rest = text.slice(column);
  if (/^[@`]/.test(rest) || text.startsWith("\t")) return NO_TOKEN;
  if (rest.startsWith("%")) return column === 0 ? scanning("found unknown directive name") : NO_TOKEN;
  if (/^[\]},]/.test(rest)) return NO_NODE;
  if (rest.startsWith(":")) return NO_VALUE;
  if (!/^-(?:\s|$)/.test(rest)) return undefined;
  if (isFirstOfLine({ line, column }, lines)) return NO_KEY;
  return scanning("block sequence entries are not allowed in this context");
}

/** The error about a token after the end of the document's only value. */
function goMessageOfRoot(location: SourceLocation, lines: readonly string[]): GoMessage {
  const root = lines.slice(0, location.line).find((line) => /^[^#\s]/.test(line) && !line.startsWith("---"));
  const isItem = root !== undefined && /^-(?:\s|$)/.test(root);
  if (!isItem || (lines[location.line] ?? "").startsWith("...")) return parsing(NEXT_DOCUMENT);
  return parsing("did not find expected '-' indicator");
}

function isFirstOfLine({ line, column }: SourceLocation, lines: readonly string[]): boolean {
  return (lines[line] ?? "").slice(0, column).trim() === "";
}

/** The character that ends the innermost list, map or quoted scalar around the location. */
function enclosingEnd({ line, column }: SourceLocation, lines: readonly string[]): string | undefined {
  const before = [...lines.slice(0, line), (lines[line] ?? "").slice(0, column)].join("\n");
  const ends: string[] = [];
  let quote: string | undefined;
  for (let index = 0; index < before.length; index++) {
    const character = before[index]!;
    const isStart = /[\s[{,:]/.test(before[index - 1] ?? "\n");
    if (quote !== undefined) {
      if (character === "\\" && quote === '"') index++;
      else if (character === quote) quote = undefined;
    } else if ((character === '"' || character === "'") && isStart) quote = character;
    else if (character === "#" && /\s/.test(before[index - 1] ?? "\n")) {
      const end = before.indexOf("\n", index);
      index = end === -1 ? before.length : end;
    } else if (character === "[" && (isStart || ends.length > 0)) ends.push("]");
    else if (character === "{" && (isStart || ends.length > 0)) ends.push("}");
    else if (character === ends.at(-1)) ends.pop();
  }
  return quote ?? ends.at(-1);
}

/** A tab can continue the plain scalar of the line above, or begin a new token; Go's message depends on which. */
function goMessageOfTab(lines: readonly string[], line: number): GoMessage {
  const above = lines.slice(0, line).findLast((one) => one.trim() !== "");
  const continuesScalar = above !== undefined && !/[:\-"'\]}]$/.test(above.trim());
  return continuesScalar ? scanning("found a tab character that violates indentation") : NO_TOKEN;
}
