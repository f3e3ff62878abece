/** The current credentials of a kubeconfig user: files are read again, credential plugins run again. */
import { readFile } from "node:fs/promises";
import type { Clock } from "../../std/time/clock.ts";
import type { ExecCredential } from "./exec-credential.ts";
import { ExecPlugin } from "./exec-plugin.ts";
import type { KubeconfigUser } from "./webhook-kubeconfig.ts";

export interface Credentials {
  /** The value of the header. */
  readonly authorization?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

type Pair = Required<Pick<Credentials, "cert" | "key">>;

/** The interval at which files are read again, as in client-go. */
const REREAD_MS = 60_000;

export class UserCredentials implements Disposable {
  readonly #user: KubeconfigUser;
  readonly #clock: Clock;
  readonly #exec: ExecPlugin | undefined;
  #token: string | undefined;
  #pair: Pair | undefined;
  /** The time of the last read, on the monotonic clock. */
  #readAt: number;
  /** The last credential of the plugin. */
  #fromPlugin: ExecCredential | undefined;

  constructor(user: KubeconfigUser, clock: Clock) {
    const { cert, key, token, exec } = user;
    this.#user = user;
    this.#clock = clock;
    this.#exec = exec === undefined ? undefined : new ExecPlugin(exec, clock);
    this.#token = token;
    this.#pair = cert === undefined || key === undefined ? undefined : { cert, key };
    this.#readAt = clock.monotonic();
  }

  /** Rejects when the credential plugin fails. */
  async get(): Promise<Credentials> {
    const { basic } = this.#user;
    await this.#reread();
    if (this.#token !== undefined) return { ...this.#pair, authorization: `Bearer ${this.#token}` };
    if (basic !== undefined) {
      const pair = Buffer.from(`${basic.username}:${basic.password}`).toString("base64");
      return { ...this.#pair, authorization: `Basic ${pair}` };
    }
    this.#fromPlugin = await this.#exec?.get();
    const { token, pair = this.#pair } = this.#fromPlugin ?? {};
    return { ...pair, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
  }

  /** The server rejected the credentials: a plugin runs again. */
  invalidate(): void {
    if (this.#fromPlugin !== undefined) this.#exec?.invalidate(this.#fromPlugin);
  }

  [Symbol.dispose](): void {
    this.#exec?.[Symbol.dispose]();
  }

  /** A file that cannot be read leaves the previous credentials in place. */
  async #reread(): Promise<void> {
    const { tokenFile, pairFiles } = this.#user;
    if (tokenFile === undefined && pairFiles === undefined) return;
    const now = this.#clock.monotonic();
    if (now < this.#readAt + REREAD_MS) return;
    this.#readAt = now;
    const read = async (path: string): Promise<string> => await readFile(path, "utf8").catch(() => "");
    if (tokenFile !== undefined) this.#token = (await read(tokenFile)).trim() || this.#token;
    if (pairFiles === undefined) return;
    const [cert, key] = await Promise.all([read(pairFiles.cert), read(pairFiles.key)]);
    if (cert !== "" && key !== "") this.#pair = { cert, key };
  }
}
