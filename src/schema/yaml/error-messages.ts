/** Translates js-yaml's errors to those of Go's YAML parser, which Kubernetes shows. */

interface GoMessage {
  readonly text: string;
  /** An error of the scanner: Go counts its line from one, and that of parser errors from zero. */
  readonly scanning: boolean;
}

const scanning = (text: string): GoMessage => ({ text, scanning: true });
const parsing = (text: string): GoMessage => ({ text, scanning: false });

const GO_MESSAGES: Readonly<Record<string, GoMessage>> = {
  "bad indentation of a mapping entry": scanning("mapping values are not allowed in this context"),
  "can not read a block mapping entry; a multiline key may not be an implicit key":
    scanning("could not find expected ':'"),
  "expected ':' after a mapping key": scanning("could not find expected ':'"),
  "bad indentation of a sequence entry": parsing("did not find expected '-' indicator"),
  "end of the stream or a document separator is expected": parsing("did not find expected <document start>"),
  "missed comma between flow collection entries": parsing("did not find expected ',' or ']'"),
  "unexpected end of the stream within a flow collection": parsing("did not find expected ',' or ']'"),
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
  "unacceptable YAML version of the document": parsing("found incompatible YAML document"),
};

/** Errors without a line. */
const UNREADABLE_REASONS: ReadonlySet<string> = new Set([
  "the stream contains non-printable characters",
  "null byte is not allowed in input",
]);

/** Where an error is. */
interface Mark {
  /** Counted from zero. */
  readonly line: number;
  readonly position: number;
}

/** `yaml: line 3: could not find expected ':'` */
export function toGoErrorMessage(reason: string, { line, position }: Mark, text: string): string {
  if (UNREADABLE_REASONS.has(reason)) return "yaml: control characters are not allowed";
  const { text: message, scanning: fromOne } = reason.startsWith("tab characters")
    ? goMessageOfTab(text, line)
    : goMessageOf(reason);
  // Go's parser counts the end of a text without a newline as a line of its own.
  if (!fromOne && position >= text.length && !text.endsWith("\n")) return `yaml: line ${line + 1}: ${message}`;
  // Go does not name the first line.
  return line === 0 ? `yaml: ${message}` : `yaml: line ${fromOne ? line + 1 : line}: ${message}`;
}

function goMessageOf(reason: string): GoMessage {
  return GO_MESSAGES[reason] ?? scanning(reason);
}

/** A tab can continue the plain scalar of the line above, or begin a new token; Go's message depends on which. */
function goMessageOfTab(text: string, line: number): GoMessage {
  const above = text
    .split("\n")
    .slice(0, line)
    .findLast((one) => one.trim() !== "");
  const continuesScalar = above !== undefined && !/[:\-"'\]}]$/.test(above.trim());
  return scanning(
    continuesScalar ? "found a tab character that violates indentation" : "found character that cannot start any token",
  );
}
