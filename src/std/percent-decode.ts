/** Decodes percent-encoded text as Go does: bytes that are not UTF-8 become U+FFFD, a malformed escape stays. */
export function percentDecode(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => Buffer.from(escapes.replaceAll("%", ""), "hex").toString());
  }
}
