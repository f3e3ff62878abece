/** Protobuf's text format, as far as the published test cases of the expression language use it. */

export type TextMessage = ReadonlyMap<string, readonly TextValue[]>;
/** Numbers and names stay text; a string of bytes is one. */
export type TextValue = string | Uint8Array | TextMessage;

/** Throws a SyntaxError with the place. */
export function parseTextproto(text: string): TextMessage {
  const reader = new Reader(text);
  const message = reader.fields(undefined);
  return message;
}

const token = /\s*(?:#[^\n]*\s*)*("(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*'|[\w.+/-]+|[^\s\w])/y;

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  fields(close: string | undefined): TextMessage {
    const message = new Map<string, TextValue[]>();
    for (let name = this.#next(); name !== close; name = this.#next()) {
      if (name === undefined) throw this.#wrong("a closing brace");
      if (name === "," || name === ";") continue;
      const key = name === "[" ? this.#extension() : name;
      const values = this.#values();
      message.set(key, [...(message.get(key) ?? []), ...values]);
    }
    return message;
  }

  /** `[type.googleapis.com/google.protobuf.Duration]` */
  #extension(): string {
    let name = "";
    for (let part = this.#next(); part !== "]"; part = this.#next()) name += part ?? "";
    return name;
  }

  #values(): TextValue[] {
    let word = this.#next();
    if (word === ":") word = this.#next();
    if (word === "[") {
      const values: TextValue[] = [];
      for (let item = this.#next(); item !== "]"; item = this.#next()) if (item !== ",") values.push(this.#value(item));
      return values;
    }
    return [this.#value(word)];
  }

  #value(word: string | undefined): TextValue {
    if (word === undefined) throw this.#wrong("a value");
    if (word === "{" || word === "<") return this.fields(word === "{" ? "}" : ">");
    if (word === "-") return `-${this.#next() ?? ""}`;
    if (!/^["']/.test(word)) return word;
    const bytes: number[] = [...unquote(word)];
    // Texts that follow each other are one.
    for (let at = this.#at, more = this.#next(); ; at = this.#at, more = this.#next()) {
      if (more !== undefined && /^["']/.test(more)) {
        bytes.push(...unquote(more));
        continue;
      }
      this.#at = at;
      return Uint8Array.from(bytes);
    }
  }

  #next(): string | undefined {
    token.lastIndex = this.#at;
    const match = token.exec(this.#text);
    if (match === null) return undefined;
    this.#at = token.lastIndex;
    return match[1];
  }

  #wrong(expected: string): SyntaxError {
    return new SyntaxError(`Cannot parse text message at ${this.#at}: expected ${expected}`);
  }
}

const plainEscapes: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, a: 7, b: 8, f: 12, v: 11 };
const escaped = /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|([\s\S]))|([^\\]+)/gy;

function unquote(word: string): Uint8Array {
  const encoder = new TextEncoder();
  const bytes: number[] = [];
  for (const [, hex, short, long, octal, letter, plain] of word.slice(1, -1).matchAll(escaped)) {
    const code = short ?? long;
    if (plain !== undefined) bytes.push(...encoder.encode(plain));
    else if (hex !== undefined) bytes.push(Number.parseInt(hex, 16));
    else if (octal !== undefined) bytes.push(Number.parseInt(octal, 8));
    else if (code !== undefined) bytes.push(...encoder.encode(String.fromCodePoint(Number.parseInt(code, 16))));
    else bytes.push(plainEscapes[letter ?? ""] ?? (letter ?? "").charCodeAt(0));
  }
  return Uint8Array.from(bytes);
}
