/** The text of an expression, and mistakes in it as cel-go prints them. */

/** A mistake in an expression. Lines count from 1; columns from 0, in characters. */
export interface CelError {
  readonly message: string;
  readonly line: number;
  readonly column: number;
}

const SNIPPET_LENGTH_MAX = 16_384;

/** Where a position of the text (in UTF-16 units) is. */
export function locate(source: string, offset: number, message: string): CelError {
  const before = source.slice(0, offset);
  const lineStart = before.lastIndexOf("\n") + 1;
  let line = 1;
  for (let at = before.indexOf("\n"); at >= 0; at = before.indexOf("\n", at + 1)) line++;
  return { message, line, column: characters(before.slice(lineStart)) };
}

/** All errors, each with its line and a mark below it. */
export function renderErrors(errors: readonly CelError[], source: string): string {
  const lines = source.split("\n");
  return errors.map((error) => renderError(error, lines[error.line - 1])).join("\n");
}

function renderError(error: CelError, line: string | undefined): string {
  const head = `ERROR: <input>:${error.line}:${error.column + 1}: ${error.message}`;
  if (line === undefined || line.length > SNIPPET_LENGTH_MAX) return head;
  const shown = line.replaceAll("\t", " ");
  const letters = [...shown];
  // Wide letters get wide marks, so that the caret stands below what it means.
  const dots = letters.slice(0, error.column).map((letter) => (isWide(letter) ? "\uff0e" : "."));
  const mark = isWide(letters[error.column] ?? "") ? "\uff3e" : "^";
  return `${head}\n | ${shown}\n | ${dots.join("")}${mark}`;
}

function isWide(letter: string): boolean {
  return letter > "\x7f";
}

/** Unicode characters of a text; JavaScript's `length` counts those beyond the first plane twice. */
export function characters(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit < 0xdc00 && i + 1 < text.length) {
      const next = text.charCodeAt(i + 1);
      if (next >= 0xdc00 && next < 0xe000) {
        count--;
        i++;
      }
    }
  }
  return count;
}
