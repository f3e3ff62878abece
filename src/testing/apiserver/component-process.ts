/** Programs of the control plane as processes, with an API server as another one. */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Test } from "tap";
import type { ServerProcess } from "./server-process.ts";

const main = new URL("../../main.ts", import.meta.url).pathname;

export interface ComponentProcess {
  readonly child: ChildProcess;
  /** Resolves with the exit code or the signal. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  readonly errors: () => string;
}

/** Starts `svc WORD` without a port, with a lease of three seconds. */
export function startComponent(
  t: Pick<Test, "teardown">,
  word: string,
  kubeconfig: string,
  ...flags: readonly string[]
): ComponentProcess {
  const lease = [
    "--leader-elect-lease-duration=12s",
    "--leader-elect-renew-deadline=10s",
    "--leader-elect-retry-period=500ms",
  ];
  const words = [main, word, `--kubeconfig=${kubeconfig}`, "--secure-port=0", ...lease, ...flags];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "ignore", "pipe"] });
  let errors = "";
  child.stderr.on("data", (data) => {
    errors = (errors + String(data)).slice(-10_000);
  });
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.on("exit", (code, signal) => resolve(signal ?? code));
  });
  t.teardown(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return { child, ended, errors: () => errors };
}

/** A kubeconfig file of the administrator. */
export function writeKubeconfig(home: string, { port }: ServerProcess): string {
  const file = join(home, "kubeconfig");
  const cluster = { server: `https://127.0.0.1:${port}`, "insecure-skip-tls-verify": true };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user: { token: "secret" } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}
