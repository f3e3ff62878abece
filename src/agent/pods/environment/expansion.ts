/** Characters: as many bytes as a message to the runtime may have. References multiply a few texts without bound. */
export const EXPANDED_MAX = 16 * 2 ** 20;

/** Counts texts of a container that are sent to the runtime together. */
export class TextBudget {
  readonly #what: string;
  #used = 0;

  /** `what` is the beginning of the error: `the environment`. */
  constructor(what: string) {
    this.#what = what;
  }

  /** Throws when the texts are too long together. */
  add(text: string): string {
    this.#used += text.length;
    if (this.#used > EXPANDED_MAX) throw new Error(`${this.#what} has more than ${EXPANDED_MAX} characters`);
    return text;
  }

  remove(text: string): void {
    this.#used -= text.length;
  }
}

/**
 * Expands `$(NAME)` in commands, arguments and environment values. `$$` is a literal dollar, so `$$(NAME)` becomes
 * `$(NAME)`. A reference to an undefined name, or without its closing parenthesis, stays unchanged. Throws when the
 * result has more than `EXPANDED_MAX` characters.
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  let out = "";
  let at = 0;
  while (at < text.length) {
    const dollar = text.indexOf("$", at);
    if (dollar < 0 || dollar === text.length - 1) return out + text.slice(at);
    out += text.slice(at, dollar);
    const next = text[dollar + 1];
    const close = next === "(" ? text.indexOf(")", dollar) : -1;
    if (next === "$") {
      out += "$";
      at = dollar + 2;
    } else if (close > 0) {
      const name = text.slice(dollar + 2, close);
      out += lookup(name) ?? `$(${name})`;
      if (out.length > EXPANDED_MAX) throw new Error(`the expanded text has more than ${EXPANDED_MAX} characters`);
      at = close + 1;
    } else {
      out += `$${next}`;
      at = dollar + 2;
    }
  }
  return out;
}
