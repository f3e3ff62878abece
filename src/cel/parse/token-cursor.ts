/** The current position in a list of tokens. */
import { SyntaxIssue, type Token } from "./lexer.ts";

export class TokenCursor {
  readonly #tokens: readonly Token[];
  #at = 0;

  /** The last token is `<EOF>`. */
  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  peek(ahead = 0): Token {
    return this.#tokens[this.#at + ahead] ?? this.#tokens.at(-1)!;
  }

  /** Stays at `<EOF>`. */
  advance(): Token {
    const token = this.peek();
    if (token.kind !== "<EOF>") this.#at++;
    return token;
  }

  /** Consumes the next token if it has this kind. */
  take(kind: string): Token | undefined {
    return this.peek().kind === kind ? this.advance() : undefined;
  }

  expect(kind: string): Token {
    return this.take(kind) ?? this.unexpected(`'${kind}'`, this.peek(1).kind === kind);
  }

  /** `extraneous` when the input would be valid without the token. */
  unexpected(expected: string, extraneous: boolean): never {
    const { text, offset } = this.peek();
    const kind = extraneous && text !== "<EOF>" ? "extraneous" : "mismatched";
    throw new SyntaxIssue(`Syntax error: ${kind} input '${text}' expecting ${expected}`, offset);
  }
}
