/**
 * A strict walk over JSON text that keeps nothing: finds the first error with its position, and members named twice
 * with their paths. Slower than `JSON.parse`, and so run only when that failed or members were lost.
 */
import { joinPath } from "./field-path.ts";

export interface Scan {
  /** `spec.containers[0].name`, once per repetition, at most `duplicatesMax`. */
  readonly duplicates: readonly string[];
}

export const duplicatesMax = 100;

/** Throws a `SyntaxError` naming line and column, counted from one. */
export function scanJson(text: string, depthMax: number): Scan {
  const scanner = new Scanner(text, depthMax);
  scanner.value();
  scanner.space();
  if (scanner.position < text.length) scanner.fail("after top-level value");
  return { duplicates: scanner.duplicates };
}

const numberShape = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;

class Scanner {
  readonly duplicates: string[] = [];
  readonly #text: string;
  readonly #depthMax: number;
  readonly #steps: (string | number)[] = [];
  position = 0;

  constructor(text: string, depthMax: number) {
    this.#text = text;
    this.#depthMax = depthMax;
  }

  value(): void {
    this.space();
    const start = this.#text[this.position];
    if (start === "{") this.#object();
    else if (start === "[") this.#array();
    else if (start === '"') this.#string();
    else if (start === "t") this.#word("true");
    else if (start === "f") this.#word("false");
    else if (start === "n") this.#word("null");
    else if (start !== undefined && /[-\d]/.test(start)) this.#number();
    else this.fail("looking for beginning of value");
  }

  space(): void {
    while (/[ \t\r\n]/.test(this.#text[this.position] ?? "")) this.position++;
  }

  #object(): void {
    const names = new Set<string>();
    this.position++;
    for (let first = true; ; first = false) {
      this.space();
      const next = this.#text[this.position];
      if (next === "}" && first) break;
      if (next !== '"') this.fail("looking for beginning of object key string");
      const name = this.#string();
      this.#enter(name);
      if (names.has(name) && this.duplicates.length < duplicatesMax) this.duplicates.push(joinPath(this.#steps));
      names.add(name);
      this.space();
      if (this.#text[this.position] !== ":") this.fail("after object key");
      this.position++;
      this.value();
      this.#steps.pop();
      this.space();
      const after = this.#text[this.position];
      if (after === "}") break;
      if (after !== ",") this.fail("after object key:value pair");
      this.position++;
    }
    this.position++;
  }

  #array(): void {
    this.position++;
    for (let place = 0; ; place++) {
      this.space();
      if (place === 0 && this.#text[this.position] === "]") break;
      this.#enter(place);
      this.value();
      this.#steps.pop();
      this.space();
      const after = this.#text[this.position];
      if (after === "]") break;
      if (after !== ",") this.fail("after array element");
      this.position++;
    }
    this.position++;
  }

  #enter(step: string | number): void {
    this.#steps.push(step);
    if (this.#steps.length > this.#depthMax) throw tooDeep(this.#depthMax);
  }

  #string(): string {
    const start = this.position++;
    for (; ; this.position++) {
      const code = this.#text.charCodeAt(this.position);
      if (Number.isNaN(code)) this.fail("in string literal");
      if (code === 0x22) break;
      if (code < 0x20) this.fail("in string literal");
      if (code === 0x5c) this.#escape();
    }
    this.position++;
    return JSON.parse(this.#text.slice(start, this.position)) as string;
  }

  #escape(): void {
    this.position++;
    const letter = this.#text[this.position];
    if (letter === undefined || !'"\\/bfnrtu'.includes(letter)) this.fail("in string escape code");
    if (letter !== "u") return;
    for (let digit = 0; digit < 4; digit++) {
      this.position++;
      if (!/[0-9a-fA-F]/.test(this.#text[this.position] ?? "")) this.fail("in \\u hexadecimal character escape");
    }
  }

  #word(word: string): void {
    for (const letter of word) {
      if (this.#text[this.position] !== letter) this.fail(`in literal ${word} (expecting '${letter}')`);
      this.position++;
    }
  }

  #number(): void {
    numberShape.lastIndex = this.position;
    const match = numberShape.exec(this.#text);
    if (match === null) {
      this.position++;
      this.fail("in numeric literal");
    }
    this.position += match[0].length;
  }

  fail(where: string): never {
    const before = this.#text.slice(0, this.position);
    const line = before.split("\n").length;
    const column = this.position - before.lastIndexOf("\n");
    const character = this.#text.codePointAt(this.position);
    const what =
      character === undefined
        ? "unexpected end of JSON input"
        : `invalid character ${quoted(String.fromCodePoint(character))} ${where}`;
    throw new SyntaxError(`${what} (line ${line}, column ${column})`);
  }
}

export function tooDeep(depthMax: number): SyntaxError {
  return new SyntaxError(`JSON is nested deeper than ${depthMax} levels`);
}

function quoted(character: string): string {
  return character === "'" ? "'\\''" : `'${JSON.stringify(character).slice(1, -1).replace('\\"', '"')}'`;
}
