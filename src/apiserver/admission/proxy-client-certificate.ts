/** The client certificate for calls of webhooks: `--proxy-client-cert-file` and its key, reloaded when they change. */
import { createSecureContext } from "node:tls";
import { type KeyPair, type KeyPairFiles, readKeyPair } from "../../auth/pki/key-pair.ts";
import { watchFiles } from "../../std/fs/watch-files.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";

interface ProxyClientCertificateDeps {
  readonly clock: Clock;
  readonly log: Logger;
}

export class ProxyClientCertificate implements Disposable {
  readonly #fileWatch: Disposable | undefined;
  #pair: KeyPair | undefined;

  private constructor(
    files: KeyPairFiles | undefined,
    keyPair: KeyPair | undefined,
    { clock, log }: ProxyClientCertificateDeps,
  ) {
    this.#pair = keyPair;
    if (files === undefined) return;
    let lastError = "";
    const reload = async (): Promise<void> => {
      try {
        const next = await readPair(files);
        if (next.cert !== this.#pair?.cert) log.info("Reloaded the proxy client certificate", { file: files.certFile });
        this.#pair = next;
        lastError = "";
      } catch (error) {
        const message = String(error);
        if (message !== lastError)
          log.error("Cannot reload the proxy client certificate; the previous one stays in use", error);
        lastError = message;
      }
    };
    let reloading = Promise.resolve();
    this.#fileWatch = watchFiles([files.certFile, files.keyFile], clock, () => {
      reloading = reloading.then(reload);
    });
  }

  /** Rejects with the flag and the file when a file is invalid; later, an invalid file is logged once. */
  static async open(
    files: KeyPairFiles | undefined,
    deps: ProxyClientCertificateDeps,
  ): Promise<ProxyClientCertificate> {
    return new ProxyClientCertificate(files, files && (await readPair(files)), deps);
  }

  /** The current key pair; undefined without the flag. */
  get pair(): KeyPair | undefined {
    return this.#pair;
  }

  [Symbol.dispose](): void {
    this.#fileWatch?.[Symbol.dispose]();
  }
}

async function readPair(files: KeyPairFiles): Promise<KeyPair> {
  const flag = `--proxy-client-cert-file="${files.certFile}"`;
  try {
    const pair = await readKeyPair(files);
    if (pair === undefined) throw new Error("it or its key is missing");
    createSecureContext(pair);
    return pair;
  } catch (cause) {
    throw new Error(`Cannot use ${flag}: ${(cause as Error).message}`, { cause });
  }
}
