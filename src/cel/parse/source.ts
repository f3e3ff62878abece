/** Errors with source positions, formatted as cel-go does. */

/** An error in an expression. Lines count from 1; columns from 0, in characters. */
export interface CelError {
  readonly message: string;
  readonly line: number;
  readonly column: number;
}

const SNIPPET_LENGTH_MAX = 16_384;

/** Creates an error at an offset in UTF-16 code units. */
export function createError(source: string, offset: number, message: string): CelError {
  const before = source.slice(0, offset);
  const lineStart = before.lastIndexOf("\n") + 1;
  let line = 1;
  for (let at = before.indexOf("\n"); at >= 0; at = before.indexOf("\n", at + 1)) line++;
  return { message, line, column: countCharacters(before.slice(lineStart)) };
}

/** Formats all errors in the order of their positions, each with its source line and a marker below. */
export function renderErrors(errors: readonly CelError[], source: string): string {
  const lines = source.split("\n");
  const snippets = new Map<number, Snippet | undefined>();
  return errors
    .toSorted((a, b) => a.line - b.line || a.column - b.column)
    .map((error) => {
      if (!snippets.has(error.line)) snippets.set(error.line, snippetOf(lines[error.line - 1]));
      return renderError(error, snippets.get(error.line));
    })
    .join("\n");
}

interface Snippet {
  readonly text: string;
  /** The padding before the marker; wide characters get wide dots for alignment. */
  readonly dots: string;
}

function snippetOf(line: string | undefined): Snippet | undefined {
  if (line === undefined || line.length > SNIPPET_LENGTH_MAX) return undefined;
  const text = line.replaceAll("\t", " ");
  return { text, dots: Array.from(text, (letter) => (isWide(letter) ? "\uff0e" : ".")).join("") };
}

function renderError(error: CelError, snippet: Snippet | undefined): string {
  const head = `ERROR: <input>:${error.line}:${error.column + 1}: ${error.message}`;
  if (snippet === undefined) return head;
  const mark = snippet.dots[error.column] === "\uff0e" ? "\uff3e" : "^";
  return `${head}\n | ${snippet.text}\n | ${snippet.dots.slice(0, error.column)}${mark}`;
}

function isWide(letter: string): boolean {
  return letter > "\x7f";
}

/** The number of Unicode characters; `length` counts those outside the basic plane twice. */
export function countCharacters(text: string): number {
  return text.length - (/[\ud800-\udbff]/.test(text) ? (text.match(pairs)?.length ?? 0) : 0);
}

const pairs = /[\ud800-\udbff][\udc00-\udfff]/g;
