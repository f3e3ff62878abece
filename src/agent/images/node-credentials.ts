/** Registry credentials in files of the node, at the paths that Docker's clients use. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../std/log/logger.ts";
import { parseDockerConfig, parseLegacyDockerConfig, type RegistryAuths } from "./docker-config.ts";

export interface NodeCredentialsOptions {
  /** The agent's own directory, read first. */
  readonly rootDir: string;
  /** `$HOME`; undefined when there is none. */
  readonly home: string | undefined;
  readonly log: Logger;
}

/** The credentials of the first valid file. Reads the files each time, because they may change. */
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
      log.warn("Failed to read registry credentials of the node", { file, error: describeError(error) });
    }
  }
  return new Map();
}

/** JSON's errors quote the text, which may contain a password. */
function describeError(error: unknown): string {
  return error instanceof SyntaxError ? "invalid JSON" : (error as Error).message;
}
