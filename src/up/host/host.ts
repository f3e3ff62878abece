/** Checks what this machine has for running pods, and describes for the operator what is missing. */
import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** The properties of the machine; tests replace them. */
export interface Machine {
  readonly platform: string;
  readonly arch: string;
  readonly uid: number;
  /** Directories of `PATH`. */
  readonly path: readonly string[];
  isExecutable(path: string): boolean;
  isDirectory(path: string): boolean;
  /** Undefined when it cannot be read. */
  readText(path: string): string | undefined;
}

export interface Host {
  /** Absolute paths. */
  readonly containerd: string;
  readonly ctr: string;
  readonly runc: string;
  readonly cniBinDir: string;
  readonly hasIptables: boolean;
  readonly mayLowerOomScore: boolean;
  readonly cgroupVersion: 1 | 2;
}

/** Lists everything that is missing, one line each. */
export class HostError extends Error {
  override readonly name = "HostError";
  readonly code = "HOST_UNSUITABLE";
  readonly missing: readonly string[];

  constructor(missing: readonly string[]) {
    super(`Cannot run pods on this machine:\n${missing.map((line) => `  - ${line}`).join("\n")}`);
    this.missing = missing;
  }
}

export function inspectMachine(env: NodeJS.ProcessEnv): Machine {
  return {
    platform: process.platform,
    arch: process.arch,
    uid: process.getuid?.() ?? -1,
    path: (env.PATH ?? "").split(":").filter((directory) => directory.startsWith("/")),
    isExecutable: (path) => {
      try {
        accessSync(path, constants.X_OK);
        return statSync(path).isFile();
      } catch {
        return false;
      }
    },
    isDirectory: (path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false,
    readText: (path) => {
      try {
        return readFileSync(path, "utf8");
      } catch {
        return undefined;
      }
    },
  };
}

/** Directories of system programs, which the `PATH` of a user may lack. */
const systemPath = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const cniBinDirs = ["/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"];
const cniPlugins = ["bridge", "host-local", "loopback", "portmap"];

/** Checks what the API server and the agent need: Linux, root and a supported CPU. */
export function checkPlatform(machine: Machine): void {
  const missing = findPlatformProblems(machine);
  if (missing.length > 0) throw new HostError(missing);
}

/**
 * Finds the programs that a managed containerd needs. Throws `HostError` with everything that is missing. Another pod
 * network installs its plugins into its own directory `cniBinDir`.
 */
export function checkHost(machine: Machine, chosenCniBinDir?: string): Host {
  const missing = findPlatformProblems(machine);
  const need = (program: string, debianPackage: string): string => {
    const found = findProgram(machine, program);
    if (found === undefined)
      missing.push(`${program} is not installed: on Debian or Ubuntu, apt-get install ${debianPackage}`);
    return found ?? "";
  };
  const containerd = need("containerd", "containerd");
  const ctr = need("ctr", "containerd");
  need("containerd-shim-runc-v2", "containerd");
  const runc = need("runc", "runc");
  const cniBinDir =
    chosenCniBinDir ??
    cniBinDirs.find((directory) => cniPlugins.every((plugin) => machine.isExecutable(join(directory, plugin))));
  if (cniBinDir === undefined) {
    missing.push(
      `CNI plugins (${cniPlugins.join(", ")}) are in none of ${cniBinDirs.join(", ")}: ` +
        "on Debian or Ubuntu, apt-get install containernetworking-plugins",
    );
  }
  if (missing.length > 0) throw new HostError(missing);
  return {
    containerd,
    ctr,
    runc,
    cniBinDir: cniBinDir ?? "",
    hasIptables: findProgram(machine, "iptables") !== undefined,
    mayLowerOomScore: hasCapability(machine, CAP_SYS_RESOURCE),
    cgroupVersion: cgroupVersion(machine),
  };
}

export function findProgram(machine: Machine, program: string): string | undefined {
  for (const directory of [...machine.path, ...systemPath]) {
    const path = join(directory, program);
    if (machine.isExecutable(path)) return path;
  }
  return undefined;
}

export function cgroupVersion(machine: Machine): 1 | 2 {
  return machine.readText("/sys/fs/cgroup/cgroup.controllers") === undefined ? 1 : 2;
}

const CAP_SYS_RESOURCE = 24n;

function hasCapability(machine: Machine, capability: bigint): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(machine.readText("/proc/self/status") ?? "")?.[1];
  return effective !== undefined && ((BigInt(`0x${effective}`) >> capability) & 1n) === 1n;
}

function findPlatformProblems(machine: Machine): string[] {
  const missing: string[] = [];
  if (machine.platform !== "linux") missing.push(`the system is ${machine.platform}: svc up needs Linux`);
  if (machine.arch !== "x64" && machine.arch !== "arm64") {
    missing.push(`the CPU is ${machine.arch}: svc up needs x64 or arm64`);
  }
  if (machine.platform === "linux" && machine.uid !== 0) {
    missing.push(`the user is not root (uid ${machine.uid}): run it with sudo`);
  }
  return missing;
}
