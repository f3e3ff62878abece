/** Formats warnings as headers (RFC 7234): `299 - "unknown field \"spec.foo\""`. */

import { WARNING_CHARACTERS_MAX, WARNINGS_CHARACTERS_MAX } from "../../api/meta/warning-limits.ts";

/** The values of the `Warning` headers, without duplicates. Texts with control characters are dropped. */
export function warningHeaders(warnings: readonly string[]): readonly string[] {
  const texts = [...new Set(warnings)].filter((text) => text !== "");
  const totalLength = texts.reduce((sum, text) => sum + characterCount(text), 0);
  return (totalLength <= WARNINGS_CHARACTERS_MAX ? texts : truncate(texts)).filter(isSendable).map(warningHeader);
}

/**
 * Keeps the texts up to the first one over the total limit, and others while those, shortened, are within it:
 * Kubernetes shortens the texts when that one is added.
 */
function truncate(texts: readonly string[]): readonly string[] {
  const result: string[] = [];
  let written = 0;
  let whole = 0;
  for (const text of texts) {
    if (written >= WARNINGS_CHARACTERS_MAX && whole > WARNINGS_CHARACTERS_MAX) break;
    const length = characterCount(text);
    whole += length;
    const short = length <= WARNING_CHARACTERS_MAX ? text : [...text].slice(0, WARNING_CHARACTERS_MAX).join("");
    result.push(short);
    written += characterCount(short);
  }
  return result;
}

function characterCount(text: string): number {
  let characters = 0;
  for (const _ of text) characters++;
  return characters;
}

function isSendable(text: string): boolean {
  return !/[\p{Cc}]/u.test(text);
}

function warningHeader(text: string): string {
  const quoted = text.toWellFormed().replace(/[\\"]/g, "\\$&");
  // Node.js encodes headers as Latin-1.
  return `299 - "${Buffer.from(quoted, "utf8").toString("latin1")}"`;
}
