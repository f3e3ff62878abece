/** Runs `svc up` with a temporary data directory, and kubectl: for tests, demo and benchmarks. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { findPrograms, kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { freePort } from "../../testing/std/free-port.ts";

export const root = fileURLToPath(new URL("../../../", import.meta.url));
/** A deadline, for machines that are busy with other tests. */
const START_MS_MAX = 180_000;
const STOP_MS_MAX = 60_000;
const OUTPUT_BYTES_MAX = 64 * 2 ** 20;

/** Command lines that start svc; the executable requires `make binary`. */
export const programs = {
  sources: ["node", "--max-semi-space-size=4", "--no-parallel-scavenge", "--expose-gc", join(root, "src/main.ts")],
  bundle: [join(root, "dist/svc")],
  binary: [join(root, `dist/svc-linux-${process.arch}`)],
} as const satisfies Record<string, readonly string[]>;

/** The reason why clusters cannot run on this machine; undefined when they can. */
export function findMissingRequirement(): string | undefined {
  if (process.platform !== "linux") return `this system is ${process.platform}, not Linux`;
  if (process.getuid?.() !== 0) return "this user is not root";
  const missing = ["containerd", "ctr", "runc"].filter((name) => findPrograms(name).length === 0);
  if (missing.length > 0) return `${missing.join(", ")} not installed (make setup installs it)`;
  if (kubectlPaths().length === 0) return "no kubectl on the PATH (SVC_KUBECTLS may name some)";
  return undefined;
}

/** The environment without the test runner's options, which make every child Node.js process load a tracer. */
const untraced = ["/usr/bin/env", "-u", "NODE_OPTIONS"] as const;

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly input?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly timeoutMs?: number;
}

/** Runs a program to its end. Never rejects: a failure is an exit code and stderr. */
export function command(file: string, args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const { input, env = process.env, cwd = root, timeoutMs = 120_000 } = options;
  return new Promise((resolve) => {
    const child = execFile(
      untraced[0],
      [...untraced.slice(1), file, ...args],
      { env, cwd, timeout: timeoutMs, maxBuffer: OUTPUT_BYTES_MAX },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === "number" ? error.code : 128;
        resolve({ code, stdout, stderr: error === null || code !== 128 ? stderr : `${stderr}${error.message}` });
      },
    );
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(input ?? "");
  });
}

export interface ClusterOptions {
  /** The command line of svc before `up`. */
  readonly program: readonly string[];
  /** More flags of `svc up`. */
  readonly flags?: readonly string[];
  readonly imageDir?: string;
}

/** A data directory, and the process of `svc up` on it, if it runs. */
export class TestCluster implements AsyncDisposable {
  readonly dataDir: string;
  readonly kubeconfig: string;
  readonly logFile: string;
  readonly port: number;
  readonly #agentPort: number;
  readonly #podCidr: string;
  readonly #options: ClusterOptions;
  #child: ChildProcess | undefined;
  #exited: Promise<number | string> = Promise.resolve(0);

  constructor(options: ClusterOptions, dataDir: string, ports: readonly [number, number]) {
    this.#options = options;
    this.dataDir = dataDir;
    this.kubeconfig = join(dataDir, "admin.svcconfig");
    this.logFile = join(dataDir, "svc.log");
    [this.port, this.#agentPort] = ports;
    // A range by port, since concurrent clusters must not share one.
    this.#podCidr = `10.${200 + (this.port % 50)}.${Math.floor(this.port / 50) % 250}.0/24`;
  }

  /** Creates a cluster in a new temporary directory without starting it. */
  static async create(options: ClusterOptions): Promise<TestCluster> {
    const dataDir = mkdtempSync(join(tmpdir(), "svc-e2e-"));
    return new TestCluster(options, dataDir, [await freePort(), await freePort()]);
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Resolves with the milliseconds until svc printed its report. */
  async start(...flags: readonly string[]): Promise<number> {
    const began = performance.now();
    const printedBefore = this.log().length;
    this.#spawn(flags);
    while (!this.log().slice(printedBefore).includes("svc is up after")) {
      const ended = await Promise.race([this.#exited.then((code) => ({ code })), sleep(10)]);
      const why = ended !== undefined ? `it exited with ${ended.code}` : "no report in time";
      if (ended !== undefined || performance.now() - began > START_MS_MAX) {
        throw new Error(`Failed to start svc up: ${why}; its log:\n${this.log().slice(printedBefore)}`);
      }
    }
    return performance.now() - began;
  }

  #spawn(flags: readonly string[]): void {
    const log = openSync(this.logFile, "a", 0o600);
    const child = spawn(
      untraced[0],
      [
        ...untraced.slice(1),
        ...this.#options.program,
        "up",
        `--data-dir=${this.dataDir}`,
        "--bind-address=127.0.0.1",
        `--secure-port=${this.port}`,
        `--agent-port=${this.#agentPort}`,
        `--pod-cidr=${this.#podCidr}`,
        "--node-name=e2e",
        `--image-dir=${this.#options.imageDir ?? join(root, "dist/images")}`,
        ...(this.#options.flags ?? []),
        ...flags,
      ],
      { stdio: ["ignore", log, log], cwd: this.dataDir },
    );
    closeSync(log);
    this.#child = child;
    this.#exited = new Promise((resolve) => {
      child.once("error", (error) => resolve(error.message));
      child.once("exit", (code, signal) => resolve(code ?? signal ?? ""));
    });
  }

  /** Sends a signal and waits; resolves with the exit code, or the name of the signal that ended the process. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | string> {
    const child = this.#child;
    if (child === undefined) return 0;
    child.kill(signal);
    const hard = setTimeout(() => child.kill("SIGKILL"), STOP_MS_MAX);
    const code = await this.#exited;
    clearTimeout(hard);
    this.#child = undefined;
    return code;
  }

  log(): string {
    try {
      return readFileSync(this.logFile, "utf8");
    } catch {
      return "";
    }
  }

  get env(): NodeJS.ProcessEnv {
    // Removes kubectl's cache with the cluster, since another cluster may use the port later.
    return { ...process.env, KUBECONFIG: this.kubeconfig, HOME: this.dataDir };
  }

  kubectl(
    args: readonly string[],
    options: CommandOptions & { readonly binary?: string } = {},
  ): Promise<CommandResult> {
    const { binary = kubectlPaths()[0] ?? "kubectl", ...rest } = options;
    return command(binary, args, { env: this.env, ...rest });
  }

  /** The directory of the sockets from the report; empty before the first start. */
  get runDir(): string {
    return / at (\S+)\/containerd\.sock/.exec(this.log())?.[1] ?? "";
  }

  /** The process ID of the containerd that svc started. */
  containerdPid(): number {
    return Number(readFileSync(join(this.runDir, "containerd.pid"), "utf8"));
  }

  /** The address at which the cluster serves DNS, as the loopback interface has it; empty when it does not. */
  async #dnsAddress(): Promise<string> {
    const address = /Serving the cluster's DNS" address="([^"]+)"/.exec(this.log())?.[1];
    if (address === undefined) return "";
    const { stdout } = await command("ip", ["-o", "address", "show", "lo"]);
    return stdout.includes(` ${address}/`) ? address : "";
  }

  /** Remains of the cluster on this machine, a line each: processes, mounts, the bridge, the address of DNS. */
  async remains(): Promise<readonly string[]> {
    const runDir = this.runDir;
    const directories = [this.dataDir, ...(runDir === "" ? [] : [runDir])];
    const mine = (text: string): boolean => directories.some((directory) => text.includes(directory));
    const mounts = readFileSync("/proc/mounts", "utf8").split("\n").filter(mine);
    const links =
      runDir === "" ? "" : (await command("ip", ["-o", "link", "show", runDir.replace("/run/", "")])).stdout;
    const dns = await this.#dnsAddress();
    return [
      ...(dns === "" ? [] : [`address ${dns}`]),
      ...processes()
        .filter(({ text }) => mine(text))
        .map(({ pid, text }) => `process ${pid}: ${text}`),
      ...mounts.map((line) => `mount ${line}`),
      ...(links === "" ? [] : [`link ${links.trim()}`]),
      ...(await this.#tables()),
    ];
  }

  /** Tables of nftables: `table ip svc-proxy-1234abcd`. */
  async #tables(): Promise<readonly string[]> {
    const { runDir } = this;
    if (runDir === "") return [];
    const { stdout } = await command("/usr/sbin/nft", ["list", "tables"]);
    const names = ["svc-proxy", "svc-pod-network"].map((name) => ` ${runDir.replace("/run/svc", name)}`);
    return stdout.split("\n").filter((line) => names.some((name) => line.endsWith(name)));
  }

  /** Stops svc and its pods and removes the data directory, also after a failed run. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      const wasUp = this.runDir !== "";
      await this.stop();
      if (wasUp && (await this.remains()).length > 0) {
        await this.start("--stop-pods");
        await this.stop();
      }
    } finally {
      await this.#sweep();
    }
  }

  async #sweep(): Promise<void> {
    const runDir = this.runDir;
    const directories = [this.dataDir, ...(runDir === "" ? [] : [runDir])];
    for (const { pid, text } of processes()) {
      if (directories.some((directory) => text.includes(directory))) process.kill(pid, "SIGKILL");
    }
    const mounts = readFileSync("/proc/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[1] ?? "")
      .filter((path) => directories.some((directory) => path.startsWith(`${directory}/`)));
    for (const path of mounts.toReversed()) await command("umount", ["-l", path]);
    if (runDir !== "") await command("ip", ["link", "delete", runDir.replace("/run/", "")]);
    for (const table of await this.#tables()) await command("/usr/sbin/nft", ["delete", ...table.split(" ")]);
    const dns = await this.#dnsAddress();
    if (dns !== "") await command("ip", ["address", "delete", `${dns}/32`, "dev", "lo"]);
    for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  }
}

function processes(): { readonly pid: number; readonly text: string }[] {
  return readdirSync("/proc").flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) return [];
    try {
      return [{ pid, text: readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim() }];
    } catch {
      return [];
    }
  });
}
