/** Serving certificates in files, which are read again when they change. */
import { type KeyPair, type KeyPairFiles, readKeyPair } from "../auth/pki/key-pair.ts";
import type { SniCertificate } from "../flags/types/tls.ts";
import type { NamedTlsPair, TlsCertificates } from "../http/tls/options.ts";
import { watchFiles } from "../std/fs/watch-files.ts";
import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";

/** Reads all key pairs; rejects with one sentence when one cannot be used. `main` is used where no name matches. */
export async function readCertificates(
  main: KeyPairFiles | KeyPair,
  named: readonly SniCertificate[],
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<ReloadedCertificates> {
  const certificates = new ReloadedCertificates(main, named, clock, log);
  await certificates.load();
  return certificates;
}

export class ReloadedCertificates implements Disposable {
  readonly #main: KeyPairFiles | KeyPair;
  readonly #sniCertificates: readonly SniCertificate[];
  readonly #clock: Clock;
  readonly #log: Logger;
  #current: TlsCertificates | undefined;
  #fileWatch: Disposable | undefined;
  #reloading = Promise.resolve();
  /** The last logged error. */
  #lastError = "";

  constructor(main: KeyPairFiles | KeyPair, named: readonly SniCertificate[], clock: Clock, log: Logger) {
    this.#main = main;
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
    const paths = this.#sources.flatMap((each) => ("cert" in each ? [] : [each.certFile, each.keyFile]));
    if (paths.length === 0) return;
    this.#fileWatch = watchFiles(paths, this.#clock, () => {
      this.#reloading = this.#reloading.then(() => this.#reload(apply));
    });
  }

  get #sources(): readonly (KeyPairFiles | KeyPair)[] {
    return [this.#main, ...this.#sniCertificates];
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
        this.#log.info("Reloaded the serving certificates", {
          files: this.#sources.flatMap((each) => ("cert" in each ? [] : [each.certFile])),
        });
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
    const [first, ...named] = await Promise.all(this.#sources.map(readPair));
    const pairs = named.map(
      (pair, index): NamedTlsPair => ({ ...pair, names: this.#sniCertificates[index]?.names ?? [] }),
    );
    return { ...first!, named: pairs };
  }
}

async function readPair(files: KeyPairFiles | KeyPair): Promise<KeyPair> {
  if ("cert" in files) return files;
  const pair = await readKeyPair(files);
  if (pair === undefined) throw new Error(`Cannot serve: ${files.certFile} or ${files.keyFile} does not exist`);
  return pair;
}
