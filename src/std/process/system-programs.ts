/** Finds programs of the system. */
import { access, constants } from "node:fs/promises";
import { join } from "node:path";

/** Directories of system programs, which the `PATH` of a user may lack. */
const SYSTEM_PATH = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** Undefined if the program is not installed. */
export async function findSystemProgram(
  name: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string | undefined> {
  const directories = (env.PATH ?? "").split(":").filter((directory) => directory.startsWith("/"));
  for (const directory of [...directories, ...SYSTEM_PATH]) {
    const path = join(directory, name);
    const isExecutable = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isExecutable) return path;
  }
  return undefined;
}
