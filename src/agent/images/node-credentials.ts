/** Registry credentials that lie on the node itself, where Docker's clients would look for them too. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../std/log/logger.ts";
import { parseDockerConfig, parseLegacyDockerConfig, type RegistryAuths } from "./docker-config.ts";

export interface NodeCredentialsOptions {
  /** The agent's own directory, which comes first. */
  readonly rootDir: string;
  /** `$HOME`; undefined when there is none. */
  readonly home: string | undefined;
  readonly log: Logger;
}

/** Of the first file that can be read. Files are read each time: somebody may have logged in meanwhile. */
export async function readNodeCredentials({ rootDir, home, log }: NodeCredentialsOptions): Promise<RegistryAuths> {
  const homes = home === undefined || home === "" ? [] : [home];
  const modern = [rootDir, ".", ...homes.map((path) => join(path, ".docker")), "/.docker"];
  const legacy = [rootDir, ".", ...homes, "/"];
  const files = [
    ...modern.map((directory) => ({ file: join(directory, "config.json"), read: parseDockerConfig })),
    ...legacy.map((directory) => ({ file: join(directory, ".dockercfg"), read: parseLegacyDockerConfig })),
  ];
  for (const { file, read } of files) {
    const text = await readFile(file, "utf8").catch(() => undefined);
    if (text === undefined) continue;
    try {
      return read(text);
    } catch (error) {
      log.warn("Cannot use the registry credentials of the node", { file, error: describeError(error) });
    }
  }
  return new Map();
}

/** JSON's errors quote what they could not read, which may be a password. */
function describeError(error: unknown): string {
  return error instanceof SyntaxError ? "it is no JSON" : (error as Error).message;
}
