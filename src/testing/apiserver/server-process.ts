/** `svc apiserver` as a process of its own, over HTTPS: for tests that kill it or limit its memory. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { freePort } from "../std/free-port.ts";
import { until } from "../std/until.ts";

const main = new URL("../../main.ts", import.meta.url).pathname;

export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every kind
  readonly json: any;
}

export interface SendOptions {
  readonly accept?: string;
  /** `application/json` when absent. */
  readonly contentType?: string | undefined;
  /** Counts the bytes of the body only, which `json` is then. */
  readonly ignoreBody?: boolean;
}

export interface ServerProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly port: number;
  readonly errors: () => string;
  /** Resolves with the exit code or the signal. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  send(method: string, path: string, body?: unknown, options?: SendOptions): Promise<Answer>;
  /** MiB. */
  residentMemory(): number;
}

export interface ServerProcessOptions {
  readonly home: string;
  /** A directory, or a URL of servers. */
  readonly store: string;
  /** The address to listen on; 127.0.0.1 when absent. */
  readonly host?: string;
  /** Before the program: `--max-old-space-size=100`. */
  readonly nodeFlags?: readonly string[];
  /** `dist/svc` instead of the sources. */
  readonly program?: readonly string[];
  readonly flags?: readonly string[];
  /** File descriptors of this process that are 3 and following in the server's. */
  readonly inherited?: readonly number[];
  /** Called at the beginning of the start, for tests that kill the process during it. */
  readonly onSpawn?: (child: ChildProcess) => void;
}

export async function startServerProcess(options: ServerProcessOptions): Promise<ServerProcess> {
  const { home, store, host = "127.0.0.1", nodeFlags = [], program = [process.execPath, ...nodeFlags, main] } = options;
  writeFileSync(join(home, "tokens"), 'secret,admin,1,"system:masters"\n');
  const port = await freePort();
  const flags = [
    `--kvstore-servers=${store.includes("://") ? store : `level://${store}`}`,
    `--secure-port=${port}`,
    `--bind-address=${host}`,
    `--cert-dir=${home}`,
    `--token-auth-file=${join(home, "tokens")}`,
    "--authorization-mode=RBAC",
    // The number of threads is that of the test, whatever the machine has.
    ...(options.flags?.some((flag) => flag.startsWith("--workers=")) === true ? [] : ["--workers=1"]),
    ...(options.flags ?? []),
  ];
  const [file = "", ...words] = program;
  const child = spawn(file, [...words, "apiserver", ...flags], {
    stdio: ["ignore", "ignore", "pipe", ...(options.inherited ?? [])],
  });
  options.onSpawn?.(child);
  let errors = "";
  child.stderr?.on("data", (data) => {
    errors = (errors + String(data)).slice(-10_000);
  });
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.on("exit", (code, signal) => resolve(signal ?? code));
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 16, rejectUnauthorized: false });
  const send: ServerProcess["send"] = (method, path, body, sending = {}) =>
    new Promise((resolve, reject) => {
      const { accept = "application/json", contentType = "application/json", ignoreBody = false } = sending;
      const headers = { authorization: "Bearer secret", "content-type": contentType, accept };
      const sent = request({ host, port, path, method, headers, agent }, (response) => {
        const chunks: Buffer[] = [];
        let length = 0;
        response.on("data", (chunk: Buffer) => {
          length += chunk.length;
          if (!ignoreBody) chunks.push(chunk);
        });
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          const json = ignoreBody ? length : text.startsWith("{") ? JSON.parse(text) : text;
          resolve({ status: response.statusCode ?? 0, json });
        });
      });
      sent.on("error", reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  const server: ServerProcess = {
    child,
    port,
    errors: () => errors,
    ended,
    send,
    residentMemory: () =>
      Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
      agent.destroy();
    },
  };
  try {
    await until(
      () => `the server is ready; its errors: ${errors}`,
      async () => {
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`The server does not start: ${errors}`);
        return (await send("GET", "/readyz").catch(() => undefined))?.status === 200;
      },
    );
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
  return server;
}
