/** Parses the subset of protobuf's text format that CEL's published test cases use. */

export type TextMessage = ReadonlyMap<string, readonly TextValue[]>;
/** Numbers and names stay text; string literals become bytes. */
export type TextValue = string | Uint8Array | TextMessage;

/** Throws a SyntaxError with the position. */
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
      if (name === undefined) throw this.#error("a closing brace");
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
    let token = this.#next();
    if (token === ":") token = this.#next();
    if (token === "[") {
      const values: TextValue[] = [];
      for (let item = this.#next(); item !== "]"; item = this.#next()) if (item !== ",") values.push(this.#value(item));
      return values;
    }
    return [this.#value(token)];
  }

  #value(token: string | undefined): TextValue {
    if (token === undefined) throw this.#error("a value");
    if (token === "{" || token === "<") return this.fields(token === "{" ? "}" : ">");
    if (token === "-") return `-${this.#next() ?? ""}`;
    if (!/^["']/.test(token)) return token;
    const bytes: number[] = [...unquote(token)];
    // Adjacent string literals are concatenated.
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

  #error(expected: string): SyntaxError {
    return new SyntaxError(`Cannot parse text message at ${this.#at}: expected ${expected}`);
  }
}

const plainEscapes: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, a: 7, b: 8, f: 12, v: 11 };
const escaped = /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|([\s\S]))|([^\\]+)/gy;

function unquote(token: string): Uint8Array {
  const encoder = new TextEncoder();
  const bytes: number[] = [];
  for (const [, hex, short, long, octal, letter, plain] of token.slice(1, -1).matchAll(escaped)) {
    const code = short ?? long;
    if (plain !== undefined) bytes.push(...encoder.encode(plain));
    else if (hex !== undefined) bytes.push(Number.parseInt(hex, 16));
    else if (octal !== undefined) bytes.push(Number.parseInt(octal, 8));
    else if (code !== undefined) bytes.push(...encoder.encode(String.fromCodePoint(Number.parseInt(code, 16))));
    else bytes.push(plainEscapes[letter ?? ""] ?? (letter ?? "").charCodeAt(0));
  }
  return Uint8Array.from(bytes);
}
