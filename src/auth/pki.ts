/**
 * Making certificates: a private authority and what it signs. Keys are ECDSA P-256, whose handshakes and signatures are
 * the cheapest of those that every Kubernetes client takes. Subjects follow Kubernetes: CN is the user, O the groups.
 */
import "reflect-metadata";
import { createPrivateKey, type KeyObject, X509Certificate as NodeCertificate, webcrypto } from "node:crypto";
import { chmod, mkdir, open, readFile, rename } from "node:fs/promises";
import { isIP } from "node:net";
import { dirname } from "node:path";
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

cryptoProvider.set(webcrypto);

/** A certificate and its private key, both PEM. The certificate's own chain may follow it. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateRequest {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  /** DNS names and IP addresses; told apart by their form. */
  readonly alternativeNames?: readonly string[];
  readonly usages: readonly ("server" | "client")[];
  readonly days: number;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const MS_PER_DAY = 86_400_000;
/** Certificates are valid from a little before now, for hosts whose clocks differ. */
const BACKDATE_MS = 3_600_000;

/** A self-signed authority. `now` is in milliseconds since 1970. */
export async function makeCa(commonName: string, days: number, now: number): Promise<KeyPair> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: subject(commonName, []),
    ...validity(days, now),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign | KeyUsageFlags.digitalSignature, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: `${certificate.toString("pem")}\n`, key: await exportKey(keys.privateKey) };
}

/** A new key and a certificate for it, signed by `ca`. Never outlives the authority. */
export async function issueCertificate(ca: KeyPair, request: CertificateRequest, now: number): Promise<KeyPair> {
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
    const typed = names.map((value) => ({ type: isIP(value) === 0 ? ("dns" as const) : ("ip" as const), value }));
    extensions.push(new SubjectAlternativeNameExtension(typed));
  }
  const { notBefore, notAfter } = validity(request.days, now);
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

export interface KeyPairFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Undefined when either file is missing. Throws when they cannot be read or do not belong together. */
export async function readKeyPair(files: KeyPairFiles): Promise<KeyPair | undefined> {
  const [cert, key] = await Promise.all([files.certFile, files.keyFile].map(readIfPresent));
  if (cert === undefined || key === undefined) return undefined;
  if (!new NodeCertificate(cert).checkPrivateKey(createPrivateKey(key))) {
    throw new Error(`Cannot use ${files.certFile}: its key is not the one in ${files.keyFile}`);
  }
  return { cert, key };
}

/** The key first and mode 0600, so that a certificate never stands beside the wrong key for long. */
export async function writeKeyPair(files: KeyPairFiles, pair: KeyPair): Promise<void> {
  await writeFileDurably(files.keyFile, pair.key, 0o600);
  await writeFileDurably(files.certFile, pair.cert, 0o644);
}

/** Replaces a file as a whole: after a power cut it holds the old content or the new. */
export async function writeFileDurably(path: string, content: string, mode: number): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.new`;
  const file = await open(temporary, "w", mode);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  // The mode given to open() is not applied to a file that a cut-off write left behind.
  await chmod(temporary, mode);
  await rename(temporary, path);
}

/** Whether a certificate can go on serving: time left, signed by `ca`, for all these names. */
export function stillGood(
  pair: KeyPair,
  ca: string,
  alternativeNames: readonly string[],
  now: number,
  remainingDays: number,
): boolean {
  const certificate = new NodeCertificate(pair.cert);
  if (certificate.validToDate.getTime() < now + remainingDays * MS_PER_DAY) return false;
  if (certificate.validFromDate.getTime() > now) return false;
  if (!certificate.verify(new NodeCertificate(ca).publicKey)) return false;
  return alternativeNames.every((name) =>
    isIP(name) === 0
      ? certificate.checkHost(name, { subject: "never" }) !== undefined
      : certificate.checkIP(name) !== undefined,
  );
}

async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function validity(days: number, now: number): { readonly notBefore: Date; readonly notAfter: Date } {
  return { notBefore: new Date(now - BACKDATE_MS), notAfter: new Date(now + days * MS_PER_DAY) };
}

/** Names as data, never as text: a comma in a common name cannot start another attribute. */
function subject(commonName: string, organizations: readonly string[]): JsonName {
  return [...organizations.map((organization) => ({ O: [organization] })), { CN: [commonName] }];
}

function serialNumber(): string {
  const bytes = webcrypto.getRandomValues(new Uint8Array(16));
  // A serial number is positive: the highest bit stays clear.
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
