/**
 * A strict JSON parser that reports the position of the first error and the paths of duplicate members. Slower than
 * `JSON.parse`, and so used only when that failed or dropped duplicates.
 */
import { joinPath } from "../value/field-path.ts";
import { goQuoteByte } from "../value/go-quote.ts";
import type { NumberLiteral } from "../value/number-literal.ts";
import { setMember } from "../value/plain-object.ts";
import { readNumber } from "./exact-numbers.ts";

export interface JsonScan {
  /** The value of a duplicate member is a `RepeatedMember`. */
  readonly value: unknown;
  /** `spec.containers[0].name`, once per repetition, at most `duplicatesMax`, with its index among all members. */
  readonly duplicates: readonly { readonly path: string; readonly index: number }[];
  /** The index among all members of the first occurrence of each path, for the first paths up to `INDEXED_MAX`. */
  readonly memberIndexes: ReadonlyMap<string, number>;
}

/** All values of a duplicate member, in the order of the text. */
export class RepeatedMember {
  readonly values: unknown[];

  constructor(first: unknown) {
    this.values = [first];
  }
}

export const duplicatesMax = 100;
/** Characters of all indexed paths; paths of members that are nested deep are long. */
const INDEXED_MAX = 2 ** 20;

/** Throws a `SyntaxError` with line and column, from one and in bytes. Invalid UTF-8 becomes U+FFFD. */
export function scanJson(bytes: Buffer, depthMax: number, literals = false): JsonScan {
  // One character per byte, since errors name bytes, as in Go.
  const text = bytes.toString("latin1");
  const scanner = new Scanner(text, depthMax, literals);
  const value = scanner.value();
  scanner.space();
  if (scanner.position < text.length) scanner.fail("after top-level value");
  return { value, duplicates: scanner.duplicates, memberIndexes: scanner.memberIndexes };
}

class Scanner {
  readonly duplicates: { readonly path: string; readonly index: number }[] = [];
  readonly memberIndexes = new Map<string, number>();
  readonly #text: string;
  readonly #depthMax: number;
  readonly #literals: boolean;
  readonly #steps: (string | number)[] = [];
  #members = 0;
  #indexed = 0;
  position = 0;

  constructor(text: string, depthMax: number, literals: boolean) {
    this.#text = text;
    this.#literals = literals;
    this.#depthMax = depthMax;
  }

  value(): unknown {
    this.space();
    const start = this.#text[this.position];
    if (start === "{") return this.#object();
    if (start === "[") return this.#array();
    if (start === '"') return this.#string();
    if (start === "t") return this.#literal("true", true);
    if (start === "f") return this.#literal("false", false);
    if (start === "n") return this.#literal("null", null);
    if (start !== undefined && /[-\d]/.test(start)) return this.#number();
    return this.fail("looking for beginning of value");
  }

  space(): void {
    for (; ; this.position++) {
      const code = this.#text.charCodeAt(this.position);
      if (code !== 0x20 && code !== 0x09 && code !== 0x0a && code !== 0x0d) return;
    }
  }

  #object(): unknown {
    const members: Record<string, unknown> = {};
    this.position++;
    for (let first = true; ; first = false) {
      this.space();
      const next = this.#text[this.position];
      if (next === "}" && first) break;
      if (next !== '"') this.fail("looking for beginning of object key string");
      const name = this.#string();
      this.#enter(name);
      const isRepeated = this.#recordMember(members, name);
      this.space();
      if (this.#text[this.position] !== ":") this.fail("after object key");
      this.position++;
      const value = this.value();
      if (isRepeated) addRepeated(members, name, value);
      else setMember(members, name, value);
      this.#steps.pop();
      this.space();
      const after = this.#text[this.position];
      if (after === "}") break;
      if (after !== ",") this.fail("after object key:value pair");
      this.position++;
    }
    this.position++;
    return members;
  }

  /** Returns whether the member is a duplicate. */
  #recordMember(members: Readonly<Record<string, unknown>>, name: string): boolean {
    const index = this.#members++;
    const isRepeated = Object.hasOwn(members, name);
    if (isRepeated) {
      if (this.duplicates.length < duplicatesMax) this.duplicates.push({ path: joinPath(this.#steps), index });
    } else if (this.#indexed < INDEXED_MAX) {
      const path = joinPath(this.#steps);
      this.#indexed += path.length;
      this.memberIndexes.set(path, index);
    }
    return isRepeated;
  }

  #array(): unknown {
    const items: unknown[] = [];
    this.position++;
    for (let index = 0; ; index++) {
      this.space();
      if (index === 0 && this.#text[this.position] === "]") break;
      this.#enter(index);
      items.push(this.value());
      this.#steps.pop();
      this.space();
      const after = this.#text[this.position];
      if (after === "]") break;
      if (after !== ",") this.fail("after array element");
      this.position++;
    }
    this.position++;
    return items;
  }

  #enter(step: string | number): void {
    this.#steps.push(step);
    if (this.#steps.length > this.#depthMax) throw tooDeepError(this.#depthMax);
  }

  #string(): string {
    const start = this.position++;
    let isAscii = true;
    for (; ; this.position++) {
      const code = this.#text.charCodeAt(this.position);
      if (Number.isNaN(code)) this.fail("in string literal");
      if (code === 0x22) break;
      if (code < 0x20) this.fail("in string literal");
      if (code === 0x5c) this.#escape();
      if (code === 0x5c || code >= 0x80) isAscii = false;
    }
    this.position++;
    if (isAscii) return this.#text.slice(start + 1, this.position - 1);
    const quoted = Buffer.from(this.#text.slice(start, this.position), "latin1").toString("utf8");
    return (JSON.parse(quoted) as string).toWellFormed();
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

  #literal(literal: string, value: boolean | null): boolean | null {
    for (const letter of literal) {
      if (this.#text[this.position] !== letter) this.fail(`in literal ${literal} (expecting '${letter}')`);
      this.position++;
    }
    return value;
  }

  #number(): number | bigint | NumberLiteral {
    const start = this.position;
    if (this.#text[this.position] === "-") this.position++;
    if (this.#text[this.position] === "0") this.position++;
    else this.#digits("in numeric literal");
    if (this.#text[this.position] === ".") {
      this.position++;
      this.#digits("after decimal point in numeric literal");
    }
    if (/[eE]/.test(this.#text[this.position] ?? "")) {
      this.position++;
      if (/[-+]/.test(this.#text[this.position] ?? "")) this.position++;
      this.#digits("in exponent of numeric literal");
    }
    return readNumber(this.#text.slice(start, this.position), this.#literals);
  }

  /** Reads one or more digits. */
  #digits(where: string): void {
    const start = this.position;
    while (/\d/.test(this.#text[this.position] ?? "")) this.position++;
    if (this.position === start) this.fail(where);
  }

  fail(where: string): never {
    const before = this.#text.slice(0, this.position);
    const line = before.split("\n").length;
    const column = this.position - before.lastIndexOf("\n");
    const byte = this.#text.charCodeAt(this.position);
    const what = Number.isNaN(byte)
      ? "unexpected end of JSON input"
      : `invalid character ${goQuoteByte(byte)} ${where}`;
    throw new SyntaxError(`${what} (line ${line}, column ${column})`);
  }
}

function addRepeated(members: Record<string, unknown>, name: string, value: unknown): void {
  const first = members[name];
  if (first instanceof RepeatedMember) {
    first.values.push(value);
    return;
  }
  const repeated = new RepeatedMember(first);
  repeated.values.push(value);
  setMember(members, name, repeated);
}

export function tooDeepError(depthMax: number): SyntaxError {
  return new SyntaxError(`JSON is nested deeper than ${depthMax} levels`);
}
