/** Keys and certificates as files, and whether they will do. Making them is heavier and has a file of its own. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { chmod, open, readFile, rename } from "node:fs/promises";
import { isIP } from "node:net";
import { dirname } from "node:path";
import { makeDirectory } from "../../std/fs/make-directory.ts";

const MS_PER_DAY = 86_400_000;

/** A certificate and its private key, both PEM. The certificate's own chain may follow it. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface KeyPairFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Undefined when either file is missing. Throws when they cannot be read or do not belong together. */
export async function readKeyPair(files: KeyPairFiles): Promise<KeyPair | undefined> {
  const [cert, key] = await Promise.all([files.certFile, files.keyFile].map(readIfPresent));
  if (cert === undefined || key === undefined) return undefined;
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
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
  await makeDirectory(dirname(path), 0o700);
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
  const certificate = new X509Certificate(pair.cert);
  if (certificate.validToDate.getTime() < now + remainingDays * MS_PER_DAY) return false;
  if (certificate.validFromDate.getTime() > now) return false;
  if (!certificate.verify(new X509Certificate(ca).publicKey)) return false;
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
