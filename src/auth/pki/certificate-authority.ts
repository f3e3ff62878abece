/**
 * Creates certificate authorities and the certificates they sign. Keys are ECDSA P-256, the cheapest that all
 * Kubernetes clients support. Subjects follow Kubernetes: CN is the user, O the groups.
 */
import "reflect-metadata";
import { createPrivateKey, createPublicKey, type KeyObject, webcrypto } from "node:crypto";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  cryptoProvider,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  type JsonName,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { isIpAddress } from "../../std/net/ip.ts";
import type { KeyPair } from "./key-pair.ts";

cryptoProvider.set(webcrypto);

export interface CertificateOptions {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  /** DNS names and IP addresses. */
  readonly alternativeNames?: readonly string[];
  readonly usages: readonly ("server" | "client")[];
  readonly days: number;
  /** Start of the validity in milliseconds since 1970; default a little before now. */
  readonly from?: number;
}

export interface AuthorityOptions {
  readonly commonName: string;
  readonly days: number;
  readonly from?: number;
  /** PEM key of the authority that this one replaces, so that certificates it signed stay valid. */
  readonly key?: string;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const MS_PER_DAY = 86_400_000;
/** Certificates are valid from a little before now, since clocks of hosts differ. */
const BACKDATE_MS = 3_600_000;

/** A self-signed authority. `now` is in milliseconds since 1970. */
export function createCa(commonName: string, days: number, now: number): Promise<KeyPair> {
  return createAuthority({ commonName, days }, now);
}

export async function createAuthority(request: AuthorityOptions, now: number): Promise<KeyPair> {
  const keys =
    request.key === undefined
      ? await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"])
      : await importKeyPair(request.key);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: subject(request.commonName, []),
    ...validity(request, now),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign | KeyUsageFlags.digitalSignature, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: `${certificate.toString("pem")}\n`, key: request.key ?? (await exportKey(keys.privateKey)) };
}

async function importKeyPair(pem: string): Promise<webcrypto.CryptoKeyPair> {
  const key = createPrivateKey(pem);
  const spki = createPublicKey(key).export({ type: "spki", format: "der" });
  return {
    privateKey: await importKey(key),
    publicKey: await webcrypto.subtle.importKey("spki", spki, algorithm, true, ["verify"]),
  };
}

/** A new key and its certificate, signed by `ca` and not valid longer than it. */
export async function issueCertificate(ca: KeyPair, request: CertificateOptions, now: number): Promise<KeyPair> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const issuer = new X509Certificate(ca.cert);
  const signingKey = await importKey(createPrivateKey(ca.key));
  const usages = request.usages.map((usage) =>
    usage === "server" ? ExtendedKeyUsage.serverAuth : ExtendedKeyUsage.clientAuth,
  );
  const extensions: Extension[] = [
    new BasicConstraintsExtension(false, undefined, true),
    new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
    new ExtendedKeyUsageExtension(usages),
    await AuthorityKeyIdentifierExtension.create(issuer.publicKey),
  ];
  const names = request.alternativeNames ?? [];
  if (names.length > 0) {
    const typed = names.map((value) => ({ type: isIpAddress(value) ? ("ip" as const) : ("dns" as const), value }));
    extensions.push(new SubjectAlternativeNameExtension(typed));
  }
  const { notBefore, notAfter } = validity(request, now);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: subject(request.commonName, request.organizations ?? []),
    issuer: issuer.subjectName.toJSON(),
    notBefore,
    notAfter: new Date(Math.min(notAfter.getTime(), issuer.notAfter.getTime())),
    signingAlgorithm: algorithm,
    signingKey,
    publicKey: keys.publicKey,
    extensions,
  });
  return { cert: `${certificate.toString("pem")}\n`, key: await exportKey(keys.privateKey) };
}

function validity({ days, from }: Pick<CertificateOptions, "days" | "from">, now: number) {
  return { notBefore: new Date(from ?? now - BACKDATE_MS), notAfter: new Date(now + days * MS_PER_DAY) };
}

/** Names are structured data, so that a comma in a common name cannot start another attribute. */
function subject(commonName: string, organizations: readonly string[]): JsonName {
  return [...organizations.map((organization) => ({ O: [organization] })), { CN: [commonName] }];
}

function serialNumber(): string {
  const bytes = webcrypto.getRandomValues(new Uint8Array(16));
  // Clears the highest bit, since a serial number is positive.
  bytes[0] = (bytes[0] ?? 0) & 0x7f;
  return Buffer.from(bytes).toString("hex");
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = await webcrypto.subtle.exportKey("pkcs8", key);
  return createPrivateKey({ key: Buffer.from(der), format: "der", type: "pkcs8" })
    .export({ type: "pkcs8", format: "pem" })
    .toString();
}

function importKey(key: KeyObject): Promise<webcrypto.CryptoKey> {
  const der = key.export({ type: "pkcs8", format: "der" });
  return webcrypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"]);
}
