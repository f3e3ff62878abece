/**
 * A containerd in a temporary directory, with its own bridge and two images made from
 * /bin/busybox: `localhost/bb:1` (a shell) and the sandbox image.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { AgentConfig } from "../../agent/agent-config.ts";
import { defaultAgentConfig } from "../../agent/options.ts";
import { until } from "../std/until.ts";

const run = promisify(execFile);

export interface PrivateContainerd extends AsyncDisposable {
  readonly directory: string;
  /** `unix:///…/containerd.sock` */
  readonly endpoint: string;
  /** Path of the same, for `ctr`. */
  readonly socket: string;
  readonly image: string;
  /** Ends containerd as `kill -9` does; containers and their shims stay. */
  kill(): Promise<void>;
  /** Starts it again after `kill`, and waits until it serves. */
  start(): Promise<void>;
}

/** The configuration of an agent `n1` with this containerd and its files below `directory`. */
export function createAgentConfig({ endpoint }: PrivateContainerd, directory: string): AgentConfig {
  const base = defaultAgentConfig("n1");
  return {
    ...base,
    rootDir: join(directory, "root"),
    podLogsDir: join(directory, "logs"),
    certDir: join(directory, "pki"),
    runtime: { ...base.runtime, endpoint, imageEndpoint: endpoint, failSwapOn: false, failCgroupV1: false },
    server: { ...base.server, address: "127.0.0.1", port: 0, readOnlyPort: 0, healthzPort: 0 },
  };
}

/** What is missing to run a containerd; empty when nothing is. */
export async function findMissing(): Promise<readonly string[]> {
  const missing: string[] = process.getuid?.() === 0 ? [] : ["root"];
  for (const tool of ["containerd", "runc", "ctr"]) {
    await run("which", [tool]).catch(() => missing.push(tool));
  }
  for (const path of ["/bin/busybox", "/usr/lib/cni/bridge"]) {
    await stat(path).catch(() => missing.push(path));
  }
  return missing;
}

const START_TIMEOUT_MS = 30_000;

/**
 * `prefix`: a program with arguments that executes containerd, for instance in another network namespace. Without a
 * network there is no CNI configuration. `prepare` is called with the directory before
 * the start; it may return the path of a program that replaces runc.
 */
export async function startPrivateContainerd(
  prefix: readonly string[] = [],
  hasNetwork = true,
  prepare?: (directory: string) => string | undefined,
): Promise<PrivateContainerd> {
  const directory = await mkdtemp(join(tmpdir(), "svc-ctr-"));
  const name = randomBytes(3).toString("hex");
  const bridge = `svct${name}`;
  // Socket paths must be short. Shims outlive their containerd, and the clean-up needs their state.
  const socket = join(directory, "c.sock");
  await writeConfig(directory, hasNetwork ? bridge : undefined, prepare?.(directory));
  const [program = "", ...args] = [...prefix, "containerd", "--config", join(directory, "config.toml")];
  const spawnContainerd = () => spawn(program, args, { stdio: "ignore" });
  let child = spawnContainerd();
  const ctr = (...args: string[]) => run("ctr", ["--address", socket, "-n", "k8s.io", ...args]);
  const clean = async (): Promise<void> => {
    await removeAll(ctr);
    await stop(child, "SIGTERM");
    await killShims(socket);
    await removeNetworks(prefix, hasNetwork ? bridge : undefined);
    await unmountBelow(directory);
    await rm(directory, { recursive: true, force: true });
  };
  const untilServing = async (): Promise<void> => {
    const isServing = async (): Promise<boolean> => {
      if (child.exitCode !== null) throw new Error("containerd does not start");
      return await ctr("version").then(
        () => true,
        () => false,
      );
    };
    await until("containerd serves", isServing, { timeoutMs: START_TIMEOUT_MS });
  };
  try {
    await untilServing();
    for (const [image, command] of [
      ["localhost/bb:1", ["sleep", "3600"]],
      ["localhost/pause:1", ["/bin/sleep", "2147483647"]],
    ] as const) {
      const archive = await makeImage(directory, image, command);
      await ctr("images", "import", archive);
    }
  } catch (error) {
    await clean();
    throw error;
  }
  return {
    directory,
    endpoint: `unix://${socket}`,
    socket,
    image: "localhost/bb:1",
    kill: () => stop(child, "SIGKILL"),
    async start() {
      child = spawnContainerd();
      await untilServing();
    },
    [Symbol.asyncDispose]: clean,
  };
}

/** Networks of pods that were not stopped outlive their containers. */
async function removeNetworks(prefix: readonly string[], bridge: string | undefined): Promise<void> {
  const ip = async (...args: readonly string[]): Promise<string> => {
    const [program = "", ...rest] = [...prefix, "ip", ...args];
    return await run(program, rest).then(
      ({ stdout }) => stdout,
      () => "",
    );
  };
  const links = await ip("-o", "link", "show", ...(bridge === undefined ? ["type", "veth"] : ["master", bridge]));
  for (const [, network = ""] of links.matchAll(/ link-netns (cni-\S+)/g)) await ip("netns", "del", network);
  if (bridge !== undefined) await ip("link", "del", bridge);
}

async function writeConfig(directory: string, bridge: string | undefined, runtime = "runc"): Promise<void> {
  const cni = join(directory, "cni");
  await mkdir(cni);
  const subnet = `10.${100 + ((randomBytes(1)[0] ?? 0) % 100)}.${randomBytes(1)[0]}.0/24`;
  const plugins = [
    {
      type: "bridge",
      bridge,
      isGateway: true,
      ipMasq: false,
      ipam: {
        type: "host-local",
        dataDir: join(directory, "ipam"),
        ranges: [[{ subnet }]],
        routes: [{ dst: "0.0.0.0/0" }],
      },
    },
  ];
  const conflist = JSON.stringify({ cniVersion: "0.4.0", name: bridge, plugins });
  if (bridge !== undefined) await writeFile(join(cni, "10-test.conflist"), conflist);
  const text = `version = 2
root = "${directory}/root"
state = "${directory}/state"
[grpc]
  address = "${directory}/c.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_tcp_service = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${cni}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "${runtime}"
`;
  await writeFile(join(directory, "config.toml"), text);
}

/** A docker-archive of one layer. */
async function makeImage(directory: string, name: string, command: readonly string[]): Promise<string> {
  const stage = await mkdtemp(join(directory, "image-"));
  const root = join(stage, "root");
  await mkdir(join(root, "bin"), { recursive: true });
  await mkdir(join(root, "tmp"));
  await mkdir(join(root, "etc"));
  await copyFile("/bin/busybox", join(root, "bin/busybox"));
  for (const applet of ["sh", "sleep", "cat", "echo", "ls", "id", "wc", "env", "date", "true", "false", "mount"]) {
    await symlink("busybox", join(root, "bin", applet));
  }
  await writeFile(join(root, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
  await run("tar", ["-C", root, "--owner=0", "--group=0", "-cf", join(stage, "layer.tar"), "."]);
  const layer = createHash("sha256")
    .update(await readFile(join(stage, "layer.tar")))
    .digest("hex");
  const config = JSON.stringify({
    architecture: process.arch === "arm64" ? "arm64" : "amd64",
    os: "linux",
    config: { Env: ["PATH=/bin"], Cmd: command },
    rootfs: { type: "layers", diff_ids: [`sha256:${layer}`] },
  });
  const configName = `${createHash("sha256").update(config).digest("hex")}.json`;
  await writeFile(join(stage, configName), config);
  const manifest = [{ Config: configName, RepoTags: [name], Layers: ["layer.tar"] }];
  await writeFile(join(stage, "manifest.json"), JSON.stringify(manifest));
  const archive = join(stage, "image.tar");
  await run("tar", ["-C", stage, "-cf", archive, "manifest.json", configName, "layer.tar"]);
  return archive;
}

/** Kills all containers, so that no shim is left. */
async function removeAll(ctr: (...args: string[]) => Promise<{ stdout: string }>): Promise<void> {
  const { stdout } = await ctr("tasks", "ls", "-q").catch(() => ({ stdout: "" }));
  for (const id of stdout.split("\n").filter((each) => each !== "")) {
    await ctr("tasks", "rm", "-f", id).catch(() => undefined);
  }
  const all = await ctr("containers", "ls", "-q").catch(() => ({ stdout: "" }));
  for (const id of all.stdout.split("\n").filter((each) => each !== "")) {
    await ctr("containers", "rm", id).catch(() => undefined);
  }
}

/** A containerd that was killed while it started a container does not find its shim again. */
async function killShims(socket: string): Promise<void> {
  for (const id of (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number)) {
    const args = (await readFile(`/proc/${id}/cmdline`, "latin1").catch(() => "")).split("\0");
    if (!args[0]?.includes("containerd-shim") || !args.includes(socket)) continue;
    const children = await readFile(`/proc/${id}/task/${id}/children`, "latin1").catch(() => "");
    for (const each of [...children.split(" ").map(Number), id]) if (each > 0) killNow(each);
  }
}

function killNow(id: number): void {
  try {
    process.kill(id, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

async function stop(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  await exit;
}

async function unmountBelow(directory: string): Promise<void> {
  const table = await readFile("/proc/self/mountinfo", "utf8");
  const points = table
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((point) => point.startsWith(`${directory}/`))
    .sort((a, b) => b.length - a.length);
  for (const point of points) await run("umount", ["-l", point]).catch(() => undefined);
}
