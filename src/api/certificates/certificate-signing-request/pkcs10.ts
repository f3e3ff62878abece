/** Parses PKCS #10 certificate requests: verifies the signature and reads the subject. */
import { createPublicKey, verify } from "node:crypto";
import { pemBlocks } from "../pem.ts";

const SEQUENCE = 0x30;
const INTEGER = 0x02;
const OBJECT_IDENTIFIER = 0x06;
const BIT_STRING = 0x03;

/**
 * Hash algorithms by the DER bytes of the signature algorithm's identifier; `null` for algorithms that hash by
 * themselves.
 */
const HASHES: Readonly<Record<string, string | null>> = {
  "2a864886f70d01010b": "sha256",
  "2a864886f70d01010c": "sha384",
  "2a864886f70d01010d": "sha512",
  "2a8648ce3d040302": "sha256",
  "2a8648ce3d040303": "sha384",
  "2a8648ce3d040304": "sha512",
  "2b6570": null,
};

/** The error of a request in PEM; undefined for a valid one. */
export function requestProblem(pem: string): string | undefined {
  const [block] = pemBlocks(pem);
  if (block?.label !== "CERTIFICATE REQUEST") return "PEM block type must be CERTIFICATE REQUEST";
  try {
    return signatureProblem(block.bytes);
  } catch (error) {
    return `x509: ${error instanceof Error ? error.message : String(error)}`;
  }
}

const SET = 0x31;
const BMP_STRING = 0x1e;
const UNIVERSAL_STRING = 0x1c;
/** The object identifiers of `organizationName` and `commonName`. */
const ORGANIZATION = "55040a";
const COMMON_NAME = "550403";

/** The organizations of the subject, which become the user's groups. Throws for an invalid request. */
export function subjectOrganizations(pem: string): readonly string[] {
  return subjectNames(pem, ORGANIZATION);
}

/**
 * The last common name of the subject, which becomes the user's name; "" without one. Throws for an invalid request.
 */
export function subjectCommonName(pem: string): string {
  return subjectNames(pem, COMMON_NAME).at(-1) ?? "";
}

function subjectNames(pem: string, attributeType: string): readonly string[] {
  const [block] = pemBlocks(pem);
  if (block?.label !== "CERTIFICATE REQUEST") throw new Error("PEM block type must be CERTIFICATE REQUEST");
  const [whole] = parseElements(block.bytes);
  const [info] = parseElements(expectElement(whole, SEQUENCE).content);
  const [, subject] = parseElements(expectElement(info, SEQUENCE).content);
  const attributes = parseElements(expectElement(subject, SEQUENCE).content).flatMap((set) =>
    parseElements(expectElement(set, SET).content),
  );
  return attributes.flatMap((attribute) => {
    const [type, value] = parseElements(expectElement(attribute, SEQUENCE).content);
    if (expectElement(type, OBJECT_IDENTIFIER).content.toString("hex") !== attributeType) return [];
    return value === undefined ? [] : [textOf(value)];
  });
}

/** Decodes any string type of ASN.1, so that no name escapes comparison. */
function textOf({ tag, content }: Element): string {
  if (tag === BMP_STRING) return Buffer.from(content).swap16().toString("utf16le");
  if (tag !== UNIVERSAL_STRING) return content.toString();
  const points = Array.from({ length: Math.floor(content.length / 4) }, (_, i) => content.readUInt32BE(i * 4));
  return points.map((point) => (point > 0x10ffff ? "\ufffd" : String.fromCodePoint(point))).join("");
}

function signatureProblem(bytes: Buffer): string | undefined {
  const [whole] = parseElements(bytes);
  const [info, algorithm, signature] = parseElements(expectElement(whole, SEQUENCE).content);
  const [version, subject, key] = parseElements(expectElement(info, SEQUENCE).content);
  expectElement(version, INTEGER);
  expectElement(subject, SEQUENCE);
  const [identifier] = parseElements(expectElement(algorithm, SEQUENCE).content);
  const name = expectElement(identifier, OBJECT_IDENTIFIER).content.toString("hex");
  if (!Object.hasOwn(HASHES, name)) return "x509: cannot verify signature: algorithm unimplemented";
  const publicKey = createPublicKey({ key: expectElement(key, SEQUENCE).whole, format: "der", type: "spki" });
  // The first byte of a bit string is the number of unused bits.
  const signed = expectElement(signature, BIT_STRING).content.subarray(1);
  const holds = verify(HASHES[name], expectElement(info, SEQUENCE).whole, publicKey, signed);
  return holds ? undefined : "x509: signature does not match the key";
}

interface Element {
  readonly tag: number;
  readonly whole: Buffer;
  readonly content: Buffer;
}

function expectElement(element: Element | undefined, tag: number): Element {
  if (element?.tag !== tag) throw new Error("malformed certificate request");
  return element;
}

/** More than the attributes of any subject; a request may have 500,000 values of two bytes. */
const ELEMENTS_MAX = 10_000;

/** Parses a sequence of DER values. Throws when they do not fill the bytes exactly, or are too many. */
function parseElements(bytes: Buffer): readonly Element[] {
  const found: Element[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [tag = 0, short = 0] = bytes.subarray(at);
    const lengthBytes = short < 0x80 ? 0 : short & 0x7f;
    if (lengthBytes > 4 || short === 0x80) throw new Error("malformed certificate request");
    const start = at + 2 + lengthBytes;
    if (start > bytes.length) throw new Error("malformed certificate request");
    const length = lengthBytes === 0 ? short : bytes.readUIntBE(at + 2, lengthBytes);
    if (start + length > bytes.length) throw new Error("malformed certificate request");
    if (found.length === ELEMENTS_MAX) throw new Error(`certificate request with more than ${ELEMENTS_MAX} values`);
    found.push({ tag, whole: bytes.subarray(at, start + length), content: bytes.subarray(start, start + length) });
    at = start + length;
  }
  return found;
}
