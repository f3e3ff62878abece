/** A credential plugin, as kubectl runs them: its credentials are cached until they expire or a server rejects them. */
import { runWithStdin } from "../../std/process/run-with-stdin.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ExecCredential } from "./exec-credential.ts";
import type { ExecConfig } from "./webhook-kubeconfig.ts";

const LIMITS = { timeoutMs: 60_000, bytesMax: 1024 * 1024 };

export class ExecPlugin implements Disposable {
  readonly #config: ExecConfig;
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  #cached: ExecCredential | undefined;
  /** Concurrent callers share one run of the program. */
  #running: Promise<ExecCredential> | undefined;

  constructor(config: ExecConfig, clock: Clock) {
    this.#config = config;
    this.#clock = clock;
  }

  /** Rejects with the reason when the program fails, never with its output. */
  async get(): Promise<ExecCredential> {
    const { expires } = this.#cached ?? {};
    if (this.#cached !== undefined && (expires === undefined || this.#clock.now() < expires)) return this.#cached;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return await this.#running;
  }

  /** A server rejected these credentials: the next call runs the program again. */
  invalidate(credential: ExecCredential): void {
    if (this.#cached === credential) this.#cached = undefined;
  }

  [Symbol.dispose](): void {
    this.#stop.abort(new Error("the connection is closed"));
  }

  async #run(): Promise<ExecCredential> {
    const { command, args, env, apiVersion, installHint, cluster } = this.#config;
    const spec = { interactive: false, ...(cluster === undefined ? {} : { cluster }) };
    const info = JSON.stringify({ kind: "ExecCredential", apiVersion, spec });
    const program = { command, args, env: { ...env, KUBERNETES_EXEC_INFO: info } };
    try {
      const { parseExecCredential } = await import("./exec-credential.ts");
      const text = await runWithStdin(program, "", LIMITS, this.#clock, this.#stop.signal);
      this.#cached = parseExecCredential(text, apiVersion);
      return this.#cached;
    } catch (cause) {
      const isMissing = (cause as NodeJS.ErrnoException).code === "ENOENT";
      const hint = isMissing && installHint !== "" ? `: ${installHint}` : "";
      throw new Error(`getting credentials: exec: ${command}: ${(cause as Error).message}${hint}`, { cause });
    }
  }
}
