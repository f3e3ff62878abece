/** Credentials that a program tells, as `kubectl` has them made: kept until they expire, or are not believed. */

import { runWithStdin } from "../../std/process/run-with-stdin.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ExecConfig } from "./webhook-kubeconfig.ts";

export interface ExecCredential {
  readonly token?: string | undefined;
  readonly pair?: { readonly cert: string; readonly key: string } | undefined;
}

interface CachedCredential extends ExecCredential {
  /** In milliseconds since 1970; undefined: until somebody does not believe them. */
  readonly expires: number | undefined;
}

const LIMITS = { timeoutMs: 60_000, bytesMax: 1024 * 1024 };
const PEM = "-----BEGIN ";

export class ExecPlugin implements Disposable {
  readonly #user: ExecConfig;
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  #kept: CachedCredential | undefined;
  /** Who asks meanwhile waits for the same answer. */
  #asking: Promise<CachedCredential> | undefined;

  constructor(user: ExecConfig, clock: Clock) {
    this.#user = user;
    this.#clock = clock;
  }

  /** Rejects with why there are none, never with what the program wrote. */
  async get(): Promise<ExecCredential> {
    const { expires } = this.#kept ?? {};
    if (this.#kept !== undefined && (expires === undefined || this.#clock.now() < expires)) return this.#kept;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return await this.#asking;
  }

  /** The server did not believe these: the next time others are asked for. */
  invalidate(credential: ExecCredential): void {
    if (this.#kept === credential) this.#kept = undefined;
  }

  [Symbol.dispose](): void {
    this.#stop.abort(new Error("the connection is closed"));
  }

  async #ask(): Promise<CachedCredential> {
    const { command, args, env, apiVersion, installHint, cluster } = this.#user;
    const spec = { interactive: false, ...(cluster === undefined ? {} : { cluster }) };
    const info = JSON.stringify({ kind: "ExecCredential", apiVersion, spec });
    const program = { command, args, env: { ...env, KUBERNETES_EXEC_INFO: info } };
    try {
      const text = await runWithStdin(program, "", LIMITS, this.#clock, this.#stop.signal);
      this.#kept = parseCredential(text, apiVersion);
      return this.#kept;
    } catch (cause) {
      const isMissing = (cause as NodeJS.ErrnoException).code === "ENOENT";
      const hint = isMissing && installHint !== "" ? `: ${installHint}` : "";
      throw new Error(`getting credentials: exec: ${command}: ${(cause as Error).message}${hint}`, { cause });
    }
  }
}

/** The answer holds secrets: what is wrong is said without quoting it. */
function parseCredential(text: string, expected: string): CachedCredential {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("decoding stdout: it is no JSON");
  }
  const { kind, apiVersion, status } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (kind !== "ExecCredential" || apiVersion !== expected) {
    throw new Error(`exec plugin is configured to use API version ${expected}, and answered in another`);
  }
  if (typeof status !== "object" || status === null) throw new Error("exec plugin didn't return a status field");
  const members = status as Readonly<Record<string, unknown>>;
  const [token = "", cert = "", key = "", time = ""] = [
    "token",
    "clientCertificateData",
    "clientKeyData",
    "expirationTimestamp",
  ].map((name) => textMember(members[name], name));
  if (token === "" && cert === "") throw new Error("exec plugin didn't return a token or cert/key pair");
  if ((cert === "") !== (key === "")) throw new Error("exec plugin returned only certificate or key, not both");
  if (cert !== "" && !(cert.includes(PEM) && key.includes(PEM))) {
    throw new Error("exec plugin returned a certificate or key that is no PEM");
  }
  const expires = time === "" ? undefined : Date.parse(time);
  if (Number.isNaN(expires)) throw new Error("exec plugin returned an expirationTimestamp that is no time");
  return {
    ...(token === "" ? {} : { token }),
    ...(cert === "" ? {} : { pair: { cert, key } }),
    expires,
  };
}

function textMember(value: unknown, name: string): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw new Error(`exec plugin returned a ${name} that is no text`);
  return value;
}
