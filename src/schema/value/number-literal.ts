/** A number as it is written, for types that do not accept each spelling: `1.0`, `1e2`, or an integer out of range. */
export class NumberLiteral {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }

  toJSON(): unknown {
    return JSON.rawJSON(this.source);
  }
}

declare global {
  interface JSON {
    rawJSON(text: string): unknown;
  }
}
