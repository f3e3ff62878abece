/** A process of `svc apiserver` with its store in a temporary directory. */
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../testing/std/free-port.ts";
import { Connection, type Credentials, expectStatus } from "./load.ts";

const TOKEN = "bench";
const READY_MS_MAX = 60_000;

export class BenchServer implements AsyncDisposable {
  readonly #program: readonly string[];
  readonly #dir: string;
  readonly #port: number;
  readonly #store: string;
  #child: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();

  /** `store`: URLs of servers; a directory of the server's own when absent. */
  constructor(program: readonly string[], dir: string, port: number, store = `level://${dir}/store`) {
    this.#program = program;
    this.#dir = dir;
    this.#port = port;
    this.#store = store;
  }

  /** Creates the server without starting it. */
  static async create(program: readonly string[], store?: string): Promise<BenchServer> {
    const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
    writeFileSync(join(dir, "tokens.csv"), `${TOKEN},admin,admin,system:masters\n`);
    return new BenchServer(program, dir, await freePort(), store);
  }

  /** Adds a user, whose token is the name, before the server starts. */
  addUser(name: string): void {
    appendFileSync(join(this.#dir, "tokens.csv"), `${name},${name},${name}\n`);
  }

  /** Binds the users to the role cluster-admin. */
  async allowEverything(users: readonly string[]): Promise<void> {
    using admin = new Connection(this.credentials);
    const group = "rbac.authorization.k8s.io";
    const subjects = users.map((name) => ({ kind: "User", apiGroup: group, name }));
    const roleRef = { apiGroup: group, kind: "ClusterRole", name: "cluster-admin" };
    const binding = { metadata: { name: "bench-users" }, subjects, roleRef };
    expectStatus(await admin.request("POST", `/apis/${group}/v1/clusterrolebindings`, binding), 201);
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error("The server does not run");
    return pid;
  }

  get credentials(): Credentials {
    return { server: `https://127.0.0.1:${this.#port}`, token: TOKEN };
  }

  /** Resolves with the milliseconds until the server listens, after /readyz has responded. */
  async start(...flags: readonly string[]): Promise<number> {
    const before = this.#log().length;
    const began = performance.now();
    this.#spawn(flags);
    while (!this.#log().includes("Serving securely", before)) {
      await sleep(2);
      if (performance.now() - began > READY_MS_MAX || this.#child?.pid === undefined || this.#child.exitCode !== null) {
        throw new Error(`Failed to start svc apiserver; its log:\n${this.#log().slice(before)}`);
      }
    }
    const took = performance.now() - began;
    using connection = new Connection(this.credentials);
    expectStatus(await connection.request("GET", "/readyz"), 200);
    return took;
  }

  #spawn(flags: readonly string[]): void {
    const log = openSync(join(this.#dir, "log"), "a", 0o600);
    const [file = "", ...words] = this.#program;
    const child = spawn(
      file,
      [
        ...words,
        "apiserver",
        `--kvstore-servers=${this.#store}`,
        `--cert-dir=${this.#dir}/pki`,
        "--bind-address=127.0.0.1",
        `--secure-port=${this.#port}`,
        "--authorization-mode=Node,RBAC",
        `--token-auth-file=${this.#dir}/tokens.csv`,
        "--allow-privileged=true",
        "--disable-admission-plugins=ServiceAccount",
        ...(flags.some((flag) => flag.startsWith("--workers=")) ? [] : ["--workers=1"]),
        ...flags,
      ],
      { stdio: ["ignore", log, log], cwd: this.#dir },
    );
    closeSync(log);
    this.#child = child;
    this.#exited = new Promise((resolve) => {
      child.once("exit", () => resolve());
      child.once("error", () => resolve());
    });
  }

  async stop(): Promise<void> {
    this.#child?.kill();
    await this.#exited;
    this.#child = undefined;
  }

  #log(): string {
    try {
      return readFileSync(join(this.#dir, "log"), "utf8");
    } catch {
      return "";
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
