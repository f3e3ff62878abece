/** Reads the host for the checks: files, file systems, programs and sockets. Nothing is changed. */
import { execFile } from "node:child_process";
import { access, constants, readdir, readFile, readlink, stat, statfs } from "node:fs/promises";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";

export interface FileStat {
  readonly kind: "file" | "directory" | "socket" | "other";
  /** Permission bits. */
  readonly mode: number;
  readonly bytes: number;
}

export interface FileSystem {
  readonly totalBytes: number;
  readonly availableBytes: number;
  /** 0 for a file system without a fixed number. */
  readonly inodes: number;
  readonly freeInodes: number;
}

export interface CommandOutput {
  readonly code: number;
  readonly stdout: string;
}

/** Each read gives undefined for what does not exist or cannot be read. */
export interface HostReader {
  readonly uid: number;
  readonly hostname: string;
  readonly interfaces: ReturnType<typeof networkInterfaces>;
  readText(path: string): Promise<string | undefined>;
  readBytes(path: string): Promise<Buffer | undefined>;
  list(path: string): Promise<readonly string[] | undefined>;
  /** The targets of the symbolic links in a directory. */
  links(path: string): Promise<readonly string[]>;
  /** Follows symbolic links. */
  stat(path: string): Promise<FileStat | undefined>;
  statfs(path: string): Promise<FileSystem | undefined>;
  /** Whether the permissions and the file system allow it. */
  allows(path: string, right: "write" | "execute"): Promise<boolean>;
  /** Whether a program is in the directories of programs. */
  hasProgram(name: string): Promise<boolean>;
  /** Runs a program that only reads; undefined when it is not installed or not in time. */
  run(program: string, args: readonly string[], signal: AbortSignal): Promise<CommandOutput | undefined>;
}

const RUN_MS_MAX = 4_000;
const OUTPUT_BYTES_MAX = 2 ** 20;
/** The `PATH` of a user may lack those of system programs. */
const systemPath = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

export interface HostReaderOptions {
  /** In front of every path. */
  readonly root?: string;
  readonly env?: NodeJS.ProcessEnv;
}

export function createHostReader({ root = "", env = process.env }: HostReaderOptions = {}): HostReader {
  const at = (path: string): string => (root === "" ? path : join(root, path));
  const path = [...(env.PATH ?? "").split(":").filter((directory) => directory.startsWith("/")), ...systemPath];
  const isExecutable = (file: string): Promise<boolean> => succeeds(access(at(file), constants.X_OK));
  return {
    uid: process.getuid?.() ?? -1,
    hostname: hostname(),
    interfaces: networkInterfaces(),
    readText: (file) => attempt(readFile(at(file), "utf8")),
    readBytes: (file) => attempt(readFile(at(file))),
    list: (directory) => attempt(readdir(at(directory)).then((names) => names.sort())),
    links: (directory) => readLinks(at(directory)),
    stat: (file) => attempt(readStat(at(file))),
    statfs: (directory) => attempt(readFileSystem(at(directory))),
    allows: (file, right) => succeeds(access(at(file), right === "write" ? constants.W_OK : constants.X_OK)),
    async hasProgram(name) {
      const found = await Promise.all(path.map((directory) => isExecutable(join(directory, name))));
      return found.includes(true);
    },
    run: (program, args, signal) => runProgram(program, args, { ...env, PATH: path.join(":"), LC_ALL: "C" }, signal),
  };
}

async function attempt<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch {
    return undefined;
  }
}

function succeeds(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  );
}

async function readLinks(directory: string): Promise<readonly string[]> {
  const names = (await attempt(readdir(directory))) ?? [];
  const targets = await Promise.all(names.map((name) => attempt(readlink(join(directory, name)))));
  return targets.filter((target) => target !== undefined);
}

async function readStat(path: string): Promise<FileStat> {
  const found = await stat(path);
  const kind = found.isFile() ? "file" : found.isDirectory() ? "directory" : found.isSocket() ? "socket" : "other";
  return { kind, mode: found.mode & 0o7777, bytes: found.size };
}

async function readFileSystem(path: string): Promise<FileSystem> {
  const { blocks, bavail, bsize, files, ffree } = await statfs(path);
  return { totalBytes: blocks * bsize, availableBytes: bavail * bsize, inodes: files, freeInodes: ffree };
}

function runProgram(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<CommandOutput | undefined> {
  return new Promise((resolve) => {
    const options = { env, signal, timeout: RUN_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX, killSignal: "SIGKILL" } as const;
    const child = execFile(program, [...args], options, (error, stdout) => {
      if (error === null) resolve({ code: 0, stdout });
      else resolve(typeof error.code === "number" ? { code: error.code, stdout } : undefined);
    });
    child.stdin?.on("error", () => undefined);
    child.stdin?.end();
  });
}
