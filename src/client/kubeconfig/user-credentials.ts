/** Credentials as a connection file tells them, as they are now: files are read again, programs are asked again. */
import { readFile } from "node:fs/promises";
import type { Clock } from "../../std/time/clock.ts";
import { type ExecCredential, ExecPlugin } from "./exec-plugin.ts";
import type { KubeconfigUser } from "./webhook-kubeconfig.ts";

export interface Credentials {
  /** The header. */
  readonly authorization?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

type Pair = Required<Pick<Credentials, "cert" | "key">>;

/** As client-go: what files hold is read again no more often. */
const REREAD_MS = 60_000;

export class UserCredentials implements Disposable {
  readonly #file: KubeconfigUser;
  readonly #clock: Clock;
  readonly #exec: ExecPlugin | undefined;
  #token: string | undefined;
  #pair: Pair | undefined;
  /** On the monotonic clock. */
  #readAt: number;
  /** What a program told last. */
  #made: ExecCredential | undefined;

  constructor(file: KubeconfigUser, clock: Clock) {
    const { cert, key, token, exec } = file;
    this.#file = file;
    this.#clock = clock;
    this.#exec = exec === undefined ? undefined : new ExecPlugin(exec, clock);
    this.#token = token;
    this.#pair = cert === undefined || key === undefined ? undefined : { cert, key };
    this.#readAt = clock.monotonic();
  }

  /** Rejects when a program is to make them, and does not. */
  async get(): Promise<Credentials> {
    const { basic } = this.#file;
    await this.#readAgain();
    if (this.#token !== undefined) return { ...this.#pair, authorization: `Bearer ${this.#token}` };
    if (basic !== undefined) {
      const pair = Buffer.from(`${basic.username}:${basic.password}`).toString("base64");
      return { ...this.#pair, authorization: `Basic ${pair}` };
    }
    this.#made = await this.#exec?.get();
    const { token, pair = this.#pair } = this.#made ?? {};
    return { ...pair, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
  }

  /** The server did not believe them: a program is asked for others. */
  invalidate(): void {
    if (this.#made !== undefined) this.#exec?.invalidate(this.#made);
  }

  [Symbol.dispose](): void {
    this.#exec?.[Symbol.dispose]();
  }

  /** What cannot be read now stays what it was. */
  async #readAgain(): Promise<void> {
    const { tokenFile, pairFiles } = this.#file;
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
