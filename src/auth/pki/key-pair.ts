/**
 * Files of certificates and keys: reading, writing and checks. Creation is in other files, since its library is large.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { chmod, open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { makeDirectory } from "../../std/fs/make-directory.ts";
import { isIpAddress } from "../../std/net/ip.ts";

const MS_PER_DAY = 86_400_000;

/** A certificate and its private key, both PEM. Intermediates may follow the certificate. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface KeyPairFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Undefined if either file is missing. Throws if they cannot be read or do not match. */
export async function readKeyPair(files: KeyPairFiles): Promise<KeyPair | undefined> {
  const [cert, key] = await Promise.all([files.certFile, files.keyFile].map(readIfPresent));
  if (cert === undefined || key === undefined) return undefined;
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    throw new Error(`Cannot use ${files.certFile}: its key is not the one in ${files.keyFile}`);
  }
  return { cert, key };
}

/** Writes the key first, with mode 0600, so that the certificate is not next to the wrong key for long. */
export async function writeKeyPair(files: KeyPairFiles, pair: KeyPair): Promise<void> {
  await writeFileDurably(files.keyFile, pair.key, 0o600);
  await writeFileDurably(files.certFile, pair.cert, 0o644);
}

/** Replaces a file atomically: after a power failure it has the old content or the new. */
export async function writeFileDurably(path: string, content: string, mode: number): Promise<void> {
  await makeDirectory(dirname(path), 0o700);
  const temporary = `${path}.new`;
  const file = await open(temporary, "w", mode);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  // The mode of open() does not apply to a file that an interrupted write left.
  await chmod(temporary, mode);
  await rename(temporary, path);
}

/** Whether the certificate can still be used: enough time left, signed by `ca`, and valid for all names. */
export function isReusable(
  pair: KeyPair,
  ca: string,
  alternativeNames: readonly string[],
  now: number,
  remainingDays: number,
): boolean {
  const certificate = new X509Certificate(pair.cert);
  if (certificate.validToDate.getTime() < now + remainingDays * MS_PER_DAY) return false;
  if (certificate.validFromDate.getTime() > now) return false;
  if (!certificate.verify(new X509Certificate(ca).publicKey)) return false;
  return alternativeNames.every((name) =>
    isIpAddress(name)
      ? certificate.checkIP(name) !== undefined
      : certificate.checkHost(name, { subject: "never" }) !== undefined,
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
