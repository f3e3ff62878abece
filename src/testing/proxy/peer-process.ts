import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { PeerCommand, PeerResult } from "./peer.ts";

const PEER = fileURLToPath(new URL("./peer.ts", import.meta.url));

/** A process that serves and opens connections in a network namespace, see `peer.ts`. */
export class PeerProcess {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (text: string) => void>();
  #next = 0;

  /** The file of the namespace. */
  readonly namespace: string;

  constructor(namespace: string) {
    this.namespace = namespace;
    const env = { ...process.env, NODE_OPTIONS: "" };
    this.#child = spawn("nsenter", [`--net=${namespace}`, process.execPath, PEER], {
      stdio: ["pipe", "pipe", "inherit"],
      env,
    });
    createInterface({ input: this.#child.stdout! }).on("line", (line) => {
      const { id, text } = JSON.parse(line) as PeerResult;
      this.#waiting.get(id)?.(text);
      this.#waiting.delete(id);
    });
  }

  run(command: Omit<PeerCommand, "id">): Promise<string> {
    const id = this.#next++;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#child.stdin?.write(`${JSON.stringify({ id, ...command })}\n`);
    });
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGKILL");
    await ended;
  }
}
