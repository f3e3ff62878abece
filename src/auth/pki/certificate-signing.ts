/** PKCS #10 certificate requests: creates, parses and signs them. */
import "reflect-metadata";
import { createPrivateKey, randomBytes, webcrypto } from "node:crypto";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  cryptoProvider,
  ExtendedKeyUsageExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Pkcs10CertificateRequest,
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import type { KeyPair } from "./key-pair.ts";

cryptoProvider.set(webcrypto);

export interface ParsedRequest {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  readonly ips: readonly string[];
  readonly emails: readonly string[];
  readonly uris: readonly string[];
}

/** Parses a request in PEM. Throws for an invalid one. */
export function parseCertificateRequest(pem: string): ParsedRequest {
  const request = new Pkcs10CertificateRequest(pem);
  const names = alternativeNames(request)?.names.items ?? [];
  const of = (type: string): readonly string[] => names.filter((name) => name.type === type).map(({ value }) => value);
  return {
    commonName: request.subjectName.getField("CN")[0] ?? "",
    organizations: request.subjectName.getField("O"),
    dnsNames: of("dns"),
    ips: of("ip"),
    emails: of("email"),
    uris: of("url"),
  };
}

const ALTERNATIVE_NAMES = "2.5.29.17";

function alternativeNames(request: Pkcs10CertificateRequest): SubjectAlternativeNameExtension | undefined {
  const extension = request.getExtension(ALTERNATIVE_NAMES);
  return extension instanceof SubjectAlternativeNameExtension ? extension : undefined;
}

const FLAGS: Readonly<Record<string, KeyUsageFlags>> = {
  signing: KeyUsageFlags.digitalSignature,
  "digital signature": KeyUsageFlags.digitalSignature,
  "content commitment": KeyUsageFlags.nonRepudiation,
  "key encipherment": KeyUsageFlags.keyEncipherment,
  "key agreement": KeyUsageFlags.keyAgreement,
  "data encipherment": KeyUsageFlags.dataEncipherment,
  "encipher only": KeyUsageFlags.encipherOnly,
  "decipher only": KeyUsageFlags.decipherOnly,
};

/** In the order of certificates. */
const EXTENDED: Readonly<Record<string, string>> = {
  any: "2.5.29.37.0",
  "server auth": "1.3.6.1.5.5.7.3.1",
  "client auth": "1.3.6.1.5.5.7.3.2",
  "code signing": "1.3.6.1.5.5.7.3.3",
  "email protection": "1.3.6.1.5.5.7.3.4",
  "s/mime": "1.3.6.1.5.5.7.3.4",
  "ipsec end system": "1.3.6.1.5.5.7.3.5",
  "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
  "ipsec user": "1.3.6.1.5.5.7.3.7",
  timestamping: "1.3.6.1.5.5.7.3.8",
  "ocsp signing": "1.3.6.1.5.5.7.3.9",
  "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
  "netscape sgc": "2.16.840.1.113730.4.1",
};

/** Certificates are valid from a little before now, since clocks of hosts differ. */
const BACKDATE_MS = 300_000;
/** Shorter certificates have their whole lifetime from now on; longer ones have it from their start. */
const LONG_LIFETIME_MS = 8 * 3_600_000;

export interface SigningOptions {
  /** As in Kubernetes: `client auth`, `digital signature`, … */
  readonly usages: readonly string[];
  readonly lifetimeMs: number;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/**
 * The certificate for the request, in PEM; not an authority, and not valid longer than the issuer. Throws for a usage
 * that only authorities have, and for an unknown one.
 */
export async function signCertificateRequest(
  ca: KeyPair,
  pem: string,
  { usages, lifetimeMs, now }: SigningOptions,
): Promise<string> {
  const request = new Pkcs10CertificateRequest(pem);
  const issuer = new X509Certificate(ca.cert);
  const issuerEnd = issuer.notAfter.getTime();
  if (now >= issuerEnd) throw new Error(`the signer has expired: NotAfter=${issuer.notAfter.toISOString()}`);
  const end = now + lifetimeMs - (lifetimeMs < LONG_LIFETIME_MS ? 0 : BACKDATE_MS);
  const { flags, extended } = parseUsages(usages);
  const names = alternativeNames(request);
  const extensions: Extension[] = [
    new BasicConstraintsExtension(false, undefined, true),
    ...(flags === 0 ? [] : [new KeyUsagesExtension(flags, true)]),
    ...(extended.length === 0 ? [] : [new ExtendedKeyUsageExtension([...extended])]),
    ...(names === undefined ? [] : [new SubjectAlternativeNameExtension(names.names.toJSON(), names.critical)]),
    await AuthorityKeyIdentifierExtension.create(issuer.publicKey),
  ];
  const { key, algorithm } = await importSigningKey(ca.key);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: request.subjectName.toJSON(),
    issuer: issuer.subjectName.toJSON(),
    notBefore: new Date(now - BACKDATE_MS),
    notAfter: new Date(Math.min(end, issuerEnd)),
    signingAlgorithm: algorithm,
    signingKey: key,
    publicKey: request.publicKey,
    extensions,
  });
  return `${certificate.toString("pem")}\n`;
}

function parseUsages(usages: readonly string[]): { readonly flags: number; readonly extended: readonly string[] } {
  let flags = 0;
  const extended = new Set<string>();
  for (const usage of usages) {
    if (Object.hasOwn(FLAGS, usage)) flags |= FLAGS[usage]!;
    else if (Object.hasOwn(EXTENDED, usage)) extended.add(EXTENDED[usage]!);
    else throw new Error(`unrecognized usage ${JSON.stringify(usage)}`);
  }
  const inOrder = Object.values(EXTENDED).filter((id, index, all) => extended.has(id) && all.indexOf(id) === index);
  return { flags, extended: inOrder };
}

async function importSigningKey(pem: string) {
  const key = createPrivateKey(pem);
  const der = key.export({ type: "pkcs8", format: "der" });
  const algorithm =
    key.asymmetricKeyType === "rsa"
      ? ({ name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" } as const)
      : ({ name: "ECDSA", namedCurve: curveName(key.asymmetricKeyDetails?.namedCurve), hash: "SHA-256" } as const);
  return { key: await webcrypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"]), algorithm };
}

function curveName(name = ""): string {
  const curves: Readonly<Record<string, string>> = { prime256v1: "P-256", secp384r1: "P-384", secp521r1: "P-521" };
  const curve = curves[name];
  if (curve === undefined) throw new Error("Cannot sign with this key: it must be RSA, P-256, P-384 or P-521");
  return curve;
}

function serialNumber(): string {
  const bytes = randomBytes(16);
  // Clears the highest bit, since a serial number is positive.
  bytes[0] = (bytes[0] ?? 0) & 0x7f;
  return bytes.toString("hex");
}

export interface RequestSubject {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames?: readonly string[];
  readonly ips?: readonly string[];
}

/** A new key and a certificate request for it, both PEM. */
export async function createCertificateRequest(
  subject: RequestSubject,
): Promise<{ readonly request: string; readonly key: string }> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const { commonName, organizations, dnsNames = [], ips = [] } = subject;
  const names = [
    ...dnsNames.map((value) => ({ type: "dns" as const, value })),
    ...ips.map((value) => ({ type: "ip" as const, value })),
  ];
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: [...organizations.map((organization) => ({ O: [organization] })), { CN: [commonName] }],
    keys,
    signingAlgorithm: algorithm,
    extensions: names.length === 0 ? [] : [new SubjectAlternativeNameExtension(names)],
  });
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey));
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" }).export({ type: "pkcs8", format: "pem" });
  return { request: `${request.toString("pem")}\n`, key: key.toString() };
}
