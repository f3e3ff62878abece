/**
 * The agent's certificates on disk, in kubelet's layout: `svclet-client-2026-11-21-14-30-00.pem` with the
 * certificate and its key, mode 0600, and a symbolic link `svclet-client-current.pem` to the latest.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readdir, readFile, readlink, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { type KeyPair, writeFileDurably } from "../../auth/pki/key-pair.ts";

export type CertificateUse = "client" | "server";

/** Files kept for each use: the latest and the previous one. */
const FILES_KEPT = 2;

export class CertificateFiles {
  readonly #directory: string;
  readonly #stem: string;

  constructor(directory: string, use: CertificateUse) {
    this.#directory = directory;
    this.#stem = `svclet-${use}`;
  }

  /** The link. */
  get current(): string {
    return join(this.#directory, `${this.#stem}-current.pem`);
  }

  /** Undefined when there is no usable certificate. */
  async read(): Promise<KeyPair | undefined> {
    try {
      const text = await readFile(this.current, "utf8");
      const certificate = new X509Certificate(text);
      const key = createPrivateKey(text);
      if (!certificate.checkPrivateKey(key)) return undefined;
      return { cert: text, key: key.export({ type: "pkcs8", format: "pem" }).toString() };
    } catch {
      return undefined;
    }
  }

  /** After a power failure the link points to the old file or to the complete new one. */
  async write({ cert, key }: KeyPair, now: number): Promise<void> {
    const time = new Date(now).toISOString().slice(0, 19).replaceAll(/[T:]/g, "-");
    const name = `${this.#stem}-${time}.pem`;
    await writeFileDurably(join(this.#directory, name), `${cert}${key}`, 0o600);
    const link = `${this.current}.new`;
    await rm(link, { force: true });
    await symlink(name, link);
    await rename(link, this.current);
    await this.#clean();
  }

  async #clean(): Promise<void> {
    const pattern = new RegExp(`^${this.#stem}-\\d{4}(-\\d\\d){5}\\.pem$`);
    const linked = await readlink(this.current);
    const others = (await readdir(this.#directory)).filter((name) => pattern.test(name) && name !== linked).sort();
    for (const name of others.slice(0, Math.max(0, others.length - FILES_KEPT + 1))) {
      await rm(join(this.#directory, name), { force: true });
    }
  }
}
