/** One block of PEM, as RFC 7468 writes it. */
export interface PemBlock {
  readonly label: string;
  readonly headers: boolean;
  readonly bytes: Buffer;
}

// No block begins within another: one that never ends would otherwise be sought to the end of the text, time and again.
const BLOCK = /-----BEGIN ((?:(?!-----)[^\n])*)-----[ \t\r]*\n((?:(?!-----BEGIN )[\s\S])*?)-----END \1-----/g;
const HEADER = /^[^\n:]+:[^\n]*\n/;

/** Blocks in their order; text around them is no concern of anybody. */
export function pemBlocks(text: string): readonly PemBlock[] {
  return [...text.matchAll(BLOCK)].flatMap(([, label = "", content = ""]) => {
    const headers = HEADER.test(content);
    const body = headers ? content.slice(content.search(/\r?\n\r?\n/) + 1) : content;
    const packed = body.replace(/\s/g, "");
    return /^[A-Za-z0-9+/]*={0,2}$/.test(packed) ? [{ label, headers, bytes: Buffer.from(packed, "base64") }] : [];
  });
}
