/** kubectl with streams that stay open, of the oldest and the newest release on this machine. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { command } from "./cluster.ts";

const END_MS_MAX = 20_000;

export interface KubectlVersion {
  readonly path: string;
  readonly minor: number;
}

/** The oldest and the newest. */
export async function endsOf(paths: readonly string[]): Promise<readonly KubectlVersion[]> {
  const versions = await Promise.all(
    paths.map(async (path) => {
      const { stdout } = await command(path, ["version", "--client", "-o", "json"]);
      return { path, minor: Number(/"minor": "(\d+)/.exec(stdout)?.[1]) };
    }),
  );
  const sorted = versions.sort((a, b) => a.minor - b.minor);
  const ends = [sorted[0], sorted.at(-1)].filter((each) => each !== undefined);
  return ends.filter(({ path }, index) => ends.findIndex((each) => each.path === path) === index);
}

export class KubectlSession {
  /** What it has printed. */
  output = "";
  errors = "";
  readonly #ended: Promise<number | string>;
  readonly #child: ChildProcess;

  constructor(path: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
    const child = spawn(path, args, { stdio: "pipe", env });
    child.stdin.on("error", () => {});
    child.stdout.on("data", (chunk) => {
      this.output += chunk;
    });
    child.stderr.on("data", (chunk) => {
      this.errors += chunk;
    });
    this.#child = child;
    this.#ended = once(child, "close").then(([code, signal]) => (code ?? signal) as number | string);
  }

  write(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Resolves with how it ended by itself; the code is "running" when it did not in time. */
  async end(): Promise<{ readonly code: number | string; readonly errors: string }> {
    const { promise, resolve } = Promise.withResolvers<string>();
    const timer = setTimeout(resolve, END_MS_MAX, "running");
    const code = await Promise.race([this.#ended, promise]);
    clearTimeout(timer);
    if (code === "running") await this.kill();
    return { code, errors: this.errors };
  }

  async kill(): Promise<void> {
    this.#child.kill();
    await this.#ended;
  }
}
