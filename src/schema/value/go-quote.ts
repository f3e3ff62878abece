/** Quotes text as Go's `strconv.Quote` does: `\x01` where JSON has `\u0001`. */
export function goQuote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : `"${escapeText(text).replaceAll('"', '\\"')}"`;
}

/** Quotes a byte as errors of Go's JSON parser do: `'\x01'`, `'ï'`. */
export function goQuoteByte(byte: number): string {
  if (byte === 0x27) return "'\\''";
  return `'${escapeText(String.fromCharCode(byte))}'`;
}

const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
const SHORT: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
};

function escapeText(text: string): string {
  // Go escapes control and unassigned characters, and all white space except the ASCII space.
  return text.replace(
    /\\|(?! )[\p{C}\p{Z}]/gu,
    (character) => SHORT[character] ?? formatCode(character.codePointAt(0) ?? 0),
  );
}

function formatCode(code: number): string {
  const hex = (digits: number): string => code.toString(16).padStart(digits, "0");
  if (code < 0x80) return `\\x${hex(2)}`;
  return code > 0xffff ? `\\U${hex(8)}` : `\\u${hex(4)}`;
}
