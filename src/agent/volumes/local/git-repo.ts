/** gitRepo volumes: a clone in a directory of the pod. Deprecated, and off by default, since git runs on the node. */
import { type ExecFileException, execFile } from "node:child_process";
import { mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import type { GitRepoVolumeSource } from "../../../api/core/volume/schema.ts";
import { removeTree } from "../../../std/fs/remove-tree.ts";

export const GIT_REPO_DISABLED =
  "git-repo volume plugin has been disabled; if necessary, it may be re-enabled by enabling the feature-gate " +
  "`GitRepoVolumeDriver`";

const GIT_MS = 120_000;
const OUTPUT_BYTES_MAX = 64 * 1024;

/** No program of the repository runs on the node, and git does not wait for a password. */
const GIT_ENVIRONMENT = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "core.hooksPath",
  GIT_CONFIG_VALUE_0: "/dev/null",
};

/**
 * Clones into the directory, which exists, and checks the revision out. Idempotent: the file `marker` exists when the
 * volume is complete. Rejects with Kubernetes' messages.
 */
export async function cloneRepository(
  { repository, revision = "", directory: target = "" }: GitRepoVolumeSource,
  directory: string,
  marker: string,
  signal?: AbortSignal,
): Promise<void> {
  checkArguments({ repository, revision, directory: target });
  if ((await stat(marker).catch(() => undefined)) !== undefined) return;
  // A clone that was interrupted would be in the way.
  for (const name of await readdir(directory)) await removeTree(join(directory, name));
  await git(["clone", "--", repository, ...(target === "" ? [] : [target])], directory, signal);
  if (revision !== "") {
    const clone = await findClone(directory, target);
    await git(["checkout", revision], clone, signal);
    await git(["reset", "--hard"], clone, signal);
  }
  await mkdir(dirname(marker), { recursive: true, mode: 0o750 });
  await writeFile(marker, "");
}

function checkArguments(source: Readonly<Record<"repository" | "revision" | "directory", string>>): void {
  for (const [name, value] of Object.entries(source)) {
    if (value.startsWith("-")) throw new Error(`${JSON.stringify(value)} is an invalid value for ${name}`);
  }
  const { revision, directory } = source;
  if (revision === "" || directory === "" || !/[/\\]/.test(normalize(directory).replace(/\/$/, ""))) return;
  const why = "is not a valid directory, it must not contain a directory separator";
  throw new Error(`${JSON.stringify(directory)} ${why}`);
}

async function findClone(directory: string, target: string): Promise<string> {
  if (target !== "" && normalize(target).replace(/\/$/, "") === ".") return directory;
  const names = await readdir(directory);
  if (names.length === 1) return join(directory, names[0]!);
  throw new Error(`unexpected directory contents: [${names.join(" ")}]`);
}

function git(args: readonly string[], cwd: string, signal: AbortSignal | undefined): Promise<void> {
  const env = { ...process.env, ...GIT_ENVIRONMENT };
  const options = { cwd, env, signal, timeout: GIT_MS, maxBuffer: OUTPUT_BYTES_MAX };
  return new Promise((resolve, reject) => {
    execFile("git", args, options, (error, stdout, stderr) => {
      if (error === null) resolve();
      else reject(new Error(`failed to exec 'git ${args.join(" ")}': ${stdout}${stderr}: ${describeExit(error)}`));
    });
  });
}

function describeExit({ code, message }: ExecFileException): string {
  if (code === "ENOENT") return 'exec: "git": executable file not found in $PATH';
  return typeof code === "number" ? `exit status ${code}` : message;
}
