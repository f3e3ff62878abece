/** Parses the extensions that limit the use of a certificate and that Node's `X509Certificate` does not provide. */

export interface CertificateLimits {
  /** 1 to 3. Only version 3 has extensions. */
  readonly version: number;
  /** The allowed number of intermediates below this authority; undefined for no limit. */
  readonly pathLength: number | undefined;
  /** Critical extensions (OID content in hex) that this verifier does not enforce. */
  readonly unenforced: readonly string[];
}

interface Element {
  readonly tag: number;
  readonly content: Uint8Array;
  /** The index after the element. */
  readonly end: number;
}

const TAG_BOOLEAN = 0x01;
const TAG_INTEGER = 0x02;
const TAG_SEQUENCE = 0x30;
/** `[0] EXPLICIT Version` in a TBSCertificate; absent in version 1. */
const TAG_VERSION = 0xa0;
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

/** Throws for invalid DER. */
export function parseCertificateLimits(der: Uint8Array): CertificateLimits {
  const [body] = parseChildren(parseElement(der, 0).content);
  if (body === undefined) throw new Error("Cannot parse certificate: it is empty");
  const members = parseChildren(body.content);
  const wrapper = members.find(({ tag }) => tag === TAG_EXTENSIONS);
  const extensions = wrapper === undefined ? [] : parseChildren(parseElement(wrapper.content, 0).content);
  let pathLength: number | undefined;
  const unenforced: string[] = [];
  for (const extension of extensions) {
    const [id, ...rest] = parseChildren(extension.content);
    const value = rest.at(-1);
    if (id === undefined || value === undefined) throw new Error("Cannot parse certificate: an extension is truncated");
    const name = Buffer.from(id.content).toString("hex");
    const critical = rest[0]?.tag === TAG_BOOLEAN && rest[0].content[0] !== 0;
    if (name === BASIC_CONSTRAINTS) pathLength = parsePathLength(value.content);
    if (critical && !ENFORCED.has(name)) unenforced.push(name);
  }
  return { version: parseVersion(members), pathLength, unenforced };
}

function parseVersion([first]: readonly Element[]): number {
  if (first?.tag !== TAG_VERSION) return 1;
  const integer = parseElement(first.content, 0);
  if (integer.tag !== TAG_INTEGER || integer.content.length !== 1)
    throw new Error("Cannot parse certificate: its version");
  return integer.content[0]! + 1;
}

function parsePathLength(basicConstraints: Uint8Array): number | undefined {
  const sequence = parseElement(basicConstraints, 0);
  if (sequence.tag !== TAG_SEQUENCE) throw new Error("Cannot parse certificate: invalid basic constraints");
  const integer = parseChildren(sequence.content).find(({ tag }) => tag === TAG_INTEGER);
  if (integer === undefined) return undefined;
  // A value beyond one byte exceeds any chain.
  return integer.content.length === 1 ? integer.content[0] : Number.POSITIVE_INFINITY;
}

function parseChildren(content: Uint8Array): Element[] {
  const elements: Element[] = [];
  for (let offset = 0; offset < content.length; ) {
    const next = parseElement(content, offset);
    elements.push(next);
    offset = next.end;
  }
  return elements;
}

function parseElement(bytes: Uint8Array, offset: number): Element {
  const tag = bytes[offset];
  let length = bytes[offset + 1];
  if (tag === undefined || length === undefined) throw new Error("Cannot parse certificate: it is truncated");
  let start = offset + 2;
  if (length >= 0x80) {
    const count = length & 0x7f;
    if (count === 0 || count > 3) throw new Error("Cannot parse certificate: invalid length");
    length = 0;
    for (const byte of bytes.subarray(start, start + count)) length = length * 256 + byte;
    start += count;
  }
  const end = start + length;
  if (end > bytes.length) throw new Error("Cannot parse certificate: it is truncated");
  return { tag, content: bytes.subarray(start, end), end };
}
