/** What Node's `X509Certificate` does not tell: the extensions that limit what a certificate may be used for. */

export interface CertificateLimits {
  /** How many intermediate authorities may stand below this one; undefined for no limit. */
  readonly pathLength: number | undefined;
  /** Critical extensions (dotted OIDs, up to what was understood) that this verifier does not enforce. */
  readonly unenforced: readonly string[];
}

interface Element {
  readonly tag: number;
  readonly content: Uint8Array;
  /** Where the next element starts. */
  readonly end: number;
}

const TAG_BOOLEAN = 0x01;
const TAG_INTEGER = 0x02;
const TAG_SEQUENCE = 0x30;
/** `[3] EXPLICIT Extensions` in a TBSCertificate. */
const TAG_EXTENSIONS = 0xa3;

/** Content bytes of the object identifiers, in hex. */
const BASIC_CONSTRAINTS = "551d13";
const ENFORCED: ReadonlySet<string> = new Set([
  BASIC_CONSTRAINTS,
  "551d0f", // key usage
  "551d25", // extended key usage
  "551d11", // subject alternative name
]);

/** Throws when the bytes are not DER. */
export function certificateLimits(der: Uint8Array): CertificateLimits {
  const [body] = children(element(der, 0).content);
  if (body === undefined) throw new Error("Cannot read a certificate: it is empty");
  const wrapper = children(body.content).find(({ tag }) => tag === TAG_EXTENSIONS);
  const extensions = wrapper === undefined ? [] : children(element(wrapper.content, 0).content);
  let pathLength: number | undefined;
  const unenforced: string[] = [];
  for (const extension of extensions) {
    const [id, ...rest] = children(extension.content);
    const value = rest.at(-1);
    if (id === undefined || value === undefined) throw new Error("Cannot read a certificate: an extension is cut off");
    const name = Buffer.from(id.content).toString("hex");
    const critical = rest[0]?.tag === TAG_BOOLEAN && rest[0].content[0] !== 0;
    if (name === BASIC_CONSTRAINTS) pathLength = pathLengthOf(value.content);
    if (critical && !ENFORCED.has(name)) unenforced.push(name);
  }
  return { pathLength, unenforced };
}

function pathLengthOf(basicConstraints: Uint8Array): number | undefined {
  const sequence = element(basicConstraints, 0);
  if (sequence.tag !== TAG_SEQUENCE) throw new Error("Cannot read a certificate: its basic constraints are malformed");
  const integer = children(sequence.content).find(({ tag }) => tag === TAG_INTEGER);
  if (integer === undefined) return undefined;
  // Longer than any chain when it does not fit one byte.
  return integer.content.length === 1 ? integer.content[0] : Number.POSITIVE_INFINITY;
}

function children(content: Uint8Array): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < content.length; ) {
    const next = element(content, at);
    elements.push(next);
    at = next.end;
  }
  return elements;
}

function element(bytes: Uint8Array, at: number): Element {
  const tag = bytes[at];
  let length = bytes[at + 1];
  if (tag === undefined || length === undefined) throw new Error("Cannot read a certificate: it is cut off");
  let start = at + 2;
  if (length >= 0x80) {
    const count = length & 0x7f;
    if (count === 0 || count > 3) throw new Error("Cannot read a certificate: a length is malformed");
    length = 0;
    for (const byte of bytes.subarray(start, start + count)) length = length * 256 + byte;
    start += count;
  }
  const end = start + length;
  if (end > bytes.length) throw new Error("Cannot read a certificate: it is cut off");
  return { tag, content: bytes.subarray(start, end), end };
}
