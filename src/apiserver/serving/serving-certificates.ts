/** The serving certificates: those of the flags, or a self-signed one that is generated once. */
import { hostname } from "node:os";
import { join } from "node:path";
import { isReusable, type KeyPair, type KeyPairFiles, readKeyPair, writeKeyPair } from "../../auth/pki/key-pair.ts";
import type { NamedTlsPair, TlsCertificates } from "../../http/tls/options.ts";
import { watchFiles } from "../../std/fs/watch-files.ts";
import type { Logger } from "../../std/log/logger.ts";
import { readHostAddresses } from "../../std/net/host-addresses.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ApiServerConfig, ServingConfig } from "../config/config.ts";
import { servingNames } from "./serving-names.ts";

const DAYS = 365;
/** A generated certificate is replaced at a start when it expires within this time. */
const REMAINING_DAYS_MIN = 30;

/** Reads all key pairs; rejects with one sentence when one cannot be used. */
export async function servingCertificates(
  config: Pick<ApiServerConfig, "bindAddress" | "serving" | "services">,
  clock: Clock,
  log: Logger,
): Promise<ServingCertificates> {
  const { certificate, sniCertificates } = config.serving;
  const files = certificate ?? (await selfSignedFiles(config, clock, log));
  const certificates = new ServingCertificates(files, sniCertificates, clock, log);
  await certificates.load();
  return certificates;
}

class ServingCertificates implements Disposable {
  readonly #files: KeyPairFiles;
  readonly #sniCertificates: ServingConfig["sniCertificates"];
  readonly #clock: Clock;
  readonly #log: Logger;
  #current: TlsCertificates | undefined;
  #fileWatch: Disposable | undefined;
  #reloading = Promise.resolve();
  /** The last logged error. */
  #lastError = "";

  constructor(files: KeyPairFiles, named: ServingConfig["sniCertificates"], clock: Clock, log: Logger) {
    this.#files = files;
    this.#sniCertificates = named;
    this.#clock = clock;
    this.#log = log;
  }

  async load(): Promise<void> {
    this.#current = await this.#read();
  }

  get current(): TlsCertificates {
    if (this.#current === undefined) throw new Error("the certificates are not loaded");
    return this.#current;
  }

  /** Calls `apply` whenever the files have changed and are valid; `apply` may throw. */
  follow(apply: (certificates: TlsCertificates) => void): void {
    const paths = [this.#files, ...this.#sniCertificates].flatMap(({ certFile, keyFile }) => [certFile, keyFile]);
    this.#fileWatch = watchFiles(paths, this.#clock, () => {
      this.#reloading = this.#reloading.then(() => this.#reload(apply));
    });
  }

  [Symbol.dispose](): void {
    this.#fileWatch?.[Symbol.dispose]();
  }

  /** Invalid files change nothing and are logged once. */
  async #reload(apply: (certificates: TlsCertificates) => void): Promise<void> {
    try {
      const next = await this.#read();
      if (JSON.stringify(next) !== JSON.stringify(this.#current)) {
        apply(next);
        this.#current = next;
        this.#log.info("Reloaded the serving certificates", { file: this.#files.certFile });
      }
      this.#lastError = "";
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message === this.#lastError) return;
      this.#lastError = message;
      this.#log.error("Cannot reload the serving certificates; the previous ones stay in use", error);
    }
  }

  async #read(): Promise<TlsCertificates> {
    const [first, ...named] = await Promise.all([this.#files, ...this.#sniCertificates].map(readPair));
    const pairs = named.map(
      (pair, index): NamedTlsPair => ({ ...pair, names: this.#sniCertificates[index]?.names ?? [] }),
    );
    return { ...first!, named: pairs };
  }
}

async function readPair(files: KeyPairFiles): Promise<KeyPair> {
  const pair = await readKeyPair(files);
  if (pair === undefined) throw new Error(`Cannot serve: ${files.certFile} or ${files.keyFile} does not exist`);
  return pair;
}

/** The files of a self-signed key pair for this host; generated when there is no valid one in the directory. */
async function selfSignedFiles(
  config: Parameters<typeof servingCertificates>[0],
  clock: Clock,
  log: Logger,
): Promise<KeyPairFiles> {
  const { certDir: directory } = config.serving;
  const files = { certFile: join(directory, "apiserver.crt"), keyFile: join(directory, "apiserver.key") };
  const host = { hostname: hostname(), addresses: await readHostAddresses() };
  const { required, addresses } = servingNames(config, host);
  const existing = await readKeyPair(files);
  // The file contains the leaf certificate followed by its CA.
  const authority = existing?.cert.split(/(?<=-----END CERTIFICATE-----\n)/)[1];
  if (existing !== undefined && authority !== undefined) {
    if (isReusable(existing, authority, required, clock.now(), REMAINING_DAYS_MIN)) return files;
  }
  // Loaded only by a start that generates a certificate.
  const { issueCertificate, createCa } = await import("../../auth/pki/certificate-authority.ts");
  const ca = await createCa(`${hostname()}-ca@${Math.floor(clock.now() / 1000)}`, DAYS, clock.now());
  const alternativeNames = [...new Set([...required, ...addresses])];
  const request = { commonName: hostname(), alternativeNames, usages: ["server" as const], days: DAYS };
  const leaf = await issueCertificate(ca, request, clock.now());
  try {
    await writeKeyPair(files, { cert: leaf.cert + ca.cert, key: leaf.key });
  } catch (cause) {
    throw new Error(`Cannot write a certificate to --cert-dir=${directory}`, { cause });
  }
  log.info("Generated self-signed cert", { file: files.certFile });
  return files;
}
