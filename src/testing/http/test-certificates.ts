/** Valid and invalid certificates for tests. */
import "reflect-metadata";
import { createPrivateKey, sign, webcrypto } from "node:crypto";
import {
  BasicConstraintsExtension,
  cryptoProvider,
  ExtendedKeyUsageExtension,
  Extension,
  type JsonName,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";

cryptoProvider.set(webcrypto);

export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
  readonly der: Uint8Array;
  readonly keys: webcrypto.CryptoKeyPair;
}

export interface TestCertificateOptions {
  /** Relative names in order. */
  readonly subject: JsonName;
  /** Self-signed when absent. */
  readonly issuer?: TestCertificate;
  readonly authority?: { readonly pathLength?: number };
  /** OIDs of extended key usages. */
  readonly usages?: readonly string[];
  readonly names?: readonly string[];
  readonly addresses?: readonly string[];
  readonly notBefore?: Date;
  readonly notAfter?: Date;
  /** OID of a critical extension that is not supported. */
  readonly critical?: string;
}

export const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";
export const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
let serial = 1;

export async function makeCertificate(options: TestCertificateOptions): Promise<TestCertificate> {
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"])) as webcrypto.CryptoKeyPair;
  const { subject, issuer, authority, usages, names = [], addresses = [], critical } = options;
  const alternatives = [
    ...names.map((value) => ({ type: "dns" as const, value })),
    ...addresses.map((value) => ({ type: "ip" as const, value })),
  ];
  const extensions: Extension[] = [
    new BasicConstraintsExtension(authority !== undefined, authority?.pathLength, true),
    ...(usages === undefined ? [] : [new ExtendedKeyUsageExtension([...usages])]),
    ...(alternatives.length === 0 ? [] : [new SubjectAlternativeNameExtension(alternatives)]),
    ...(critical === undefined ? [] : [new Extension(critical, true, new Uint8Array([0x05, 0x00]))]),
  ];
  const certificate = await X509CertificateGenerator.create({
    serialNumber: (serial++).toString(16).padStart(2, "0"),
    subject,
    issuer: issuer === undefined ? subject : new X509Certificate(issuer.cert).subjectName.toJSON(),
    notBefore: options.notBefore ?? new Date("2020-01-01T00:00:00Z"),
    notAfter: options.notAfter ?? new Date("2050-01-01T00:00:00Z"),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: (issuer?.keys ?? keys).privateKey,
    extensions,
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey)).toString("base64");
  return {
    cert: `${certificate.toString("pem")}\n`,
    key: `-----BEGIN PRIVATE KEY-----\n${pkcs8}\n-----END PRIVATE KEY-----\n`,
    der: new Uint8Array(certificate.rawData),
    keys,
  };
}

/** The same certificate without extensions, in version 1 or 3, as `openssl x509 -req` makes it. */
export function withoutExtensions(
  certificate: TestCertificate,
  { version, issuer = certificate }: { readonly version: 1 | 3; readonly issuer?: TestCertificate },
): TestCertificate {
  const [signed, algorithmOfSignature] = elementsOf(contentOf(Buffer.from(certificate.der)));
  const members = elementsOf(contentOf(signed!)).filter((member) => {
    return member[0] !== EXTENSIONS_TAG && (version === 3 || member[0] !== VERSION_TAG);
  });
  const body = element(SEQUENCE_TAG, members);
  const signature = sign("sha256", body, createPrivateKey(issuer.key));
  const bits = element(BIT_STRING_TAG, [Buffer.from([0]), signature]);
  const der = element(SEQUENCE_TAG, [body, algorithmOfSignature!, bits]);
  const cert = `-----BEGIN CERTIFICATE-----\n${der.toString("base64")}\n-----END CERTIFICATE-----\n`;
  return { ...certificate, cert, der: new Uint8Array(der) };
}

const SEQUENCE_TAG = 0x30;
const BIT_STRING_TAG = 0x03;
const VERSION_TAG = 0xa0;
const EXTENSIONS_TAG = 0xa3;

/** The length of a DER element's tag and length. */
function headLength(der: Buffer): number {
  return der[1]! < 0x80 ? 2 : 2 + (der[1]! & 0x7f);
}

function contentOf(der: Buffer): Buffer {
  return der.subarray(headLength(der));
}

function elementsOf(content: Buffer): Buffer[] {
  const elements: Buffer[] = [];
  for (let at = 0; at < content.length; ) {
    const rest = content.subarray(at);
    const head = headLength(rest);
    const length = head === 2 ? rest[1]! : rest.readUIntBE(2, head - 2);
    elements.push(rest.subarray(0, head + length));
    at += head + length;
  }
  return elements;
}

function element(tag: number, parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const length = content.length < 0x80 ? [content.length] : [0x82, content.length >> 8, content.length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

/** An authority, and a certificate of it for `localhost` and `127.0.0.1`. */
export async function makeServerCertificate(): Promise<{
  readonly ca: TestCertificate;
  readonly server: TestCertificate;
}> {
  const ca = await makeCertificate({ subject: [{ CN: ["ca"] }], authority: {} });
  const server = await makeCertificate({
    subject: [{ CN: ["server"] }],
    issuer: ca,
    usages: [SERVER_AUTH],
    names: ["localhost"],
    addresses: ["127.0.0.1"],
  });
  return { ca, server };
}
