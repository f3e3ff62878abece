import type { Stats } from "node:fs";
import { stat, writeFile } from "node:fs/promises";
import type { HostPathVolumeSource } from "../../../api/core/volume/schema.ts";
import { makeDirectory } from "../../../std/fs/make-directory.ts";

interface PathCheck {
  readonly is: (stats: Stats) => boolean;
  readonly description: string;
}

const checks: Readonly<Record<string, PathCheck>> = {
  Directory: { is: (stats) => stats.isDirectory(), description: "a directory" },
  DirectoryOrCreate: { is: (stats) => stats.isDirectory(), description: "a directory" },
  File: { is: (stats) => stats.isFile(), description: "a file" },
  FileOrCreate: { is: (stats) => stats.isFile(), description: "a file" },
  Socket: { is: (stats) => stats.isSocket(), description: "a socket file" },
  CharDevice: { is: (stats) => stats.isCharacterDevice(), description: "a character device" },
  BlockDevice: { is: (stats) => stats.isBlockDevice(), description: "a block device" },
};

/** Creates the path where its type allows that; throws kubelet's error when the path has another type. */
export async function validateHostPath(source: HostPathVolumeSource): Promise<void> {
  const type = source.type ?? "";
  if (type === "") return;
  const check = checks[type];
  if (check === undefined) throw new Error(`unknown hostPath type "${type}"`);
  const found = await stat(source.path).catch(() => undefined);
  if (found === undefined && type === "DirectoryOrCreate") {
    await makeDirectory(source.path, 0o755);
  } else if (found === undefined && type === "FileOrCreate") {
    await writeFile(source.path, "", { mode: 0o644, flag: "a" });
  } else if (found === undefined || !check.is(found)) {
    throw new Error(`hostPath type check failed: ${source.path} is not ${check.description}`);
  }
}
