/** A block of PEM (RFC 7468). */
export interface PemBlock {
  readonly label: string;
  readonly headers: boolean;
  readonly bytes: Buffer;
}

// The body excludes BEGIN: an unterminated block would otherwise be scanned to the end of the text for each match.
const BLOCK = /-----BEGIN ((?:(?!-----)[^\n])*)-----[ \t\r]*\n((?:(?!-----BEGIN )[\s\S])*?)-----END \1-----/g;
const HEADER = /^[^\n:]+:[^\n]*\n/;

/** Returns the blocks in order, without the text around them. */
export function pemBlocks(text: string): readonly PemBlock[] {
  return [...text.matchAll(BLOCK)].flatMap(([, label = "", content = ""]) => {
    const headers = HEADER.test(content);
    const body = headers ? content.slice(content.search(/\r?\n\r?\n/) + 1) : content;
    const packed = body.replace(/\s/g, "");
    return /^[A-Za-z0-9+/]*={0,2}$/.test(packed) ? [{ label, headers, bytes: Buffer.from(packed, "base64") }] : [];
  });
}
