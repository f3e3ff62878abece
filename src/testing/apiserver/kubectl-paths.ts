import { accessSync, constants, readdirSync, realpathSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

/** Paths of kubectl: of the PATH, of SVC_KUBECTLS, and other versions in the directory of the first. */
export function kubectlPaths(): readonly string[] {
  const configured = (process.env.SVC_KUBECTLS ?? "").split(delimiter).filter((path) => path !== "");
  const first = findPrograms("kubectl").slice(0, 1);
  const siblings = first.flatMap((path) => {
    const directory = dirname(realpathSync(path));
    const names = readdirSync(directory).filter((name) => /^kubectl[.-]v?\d+\.\d+/.test(name));
    return names.sort().map((name) => join(directory, name));
  });
  return [...new Set([...first, ...configured, ...siblings])].filter(isExecutable);
}

/** Paths of a program on the PATH and in the directories of system programs. */
export function findPrograms(name: string): readonly string[] {
  const directories = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  return directories.map((directory) => join(directory, name)).filter(isExecutable);
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
