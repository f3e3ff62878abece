/** Imports image archives on disk into containerd, without a registry. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../std/log/logger.ts";
import { runCommand } from "../host/run-command.ts";

export interface ImageImporter {
  /** The `ctr` program. */
  readonly ctr: string;
  readonly socket: string;
  readonly snapshotter: string;
  /** Records the imported archives, so that unchanged ones are not read again. */
  readonly recordFile: string;
  readonly log: Logger;
  readonly signal?: AbortSignal | undefined;
}

interface ImportRecord {
  readonly size: number;
  readonly mtimeMs: number;
  readonly digest: string;
  readonly names: readonly string[];
}

type Records = Readonly<Record<string, ImportRecord>>;

const LIST_MS_MAX = 30_000;
const IMPORT_MS_MAX = 600_000;

/**
 * Imports the images of every archive unless containerd has them. Garbage collection does not remove pinned images. An
 * archive that cannot be read is logged and skipped, unless it is `required`.
 */
export async function importImages(
  importer: ImageImporter,
  archives: readonly { readonly path: string; readonly required?: boolean; readonly pinned?: boolean }[],
): Promise<readonly string[]> {
  const present = new Set(await listImages(importer));
  const before = await readRecords(importer.recordFile);
  const after: Record<string, ImportRecord> = {};
  for (const { path, required = false, pinned = false } of archives) {
    try {
      after[path] = await importArchive(importer, path, pinned, before[path], present);
    } catch (error) {
      if (required || importer.signal?.aborted === true) throw error;
      importer.log.error("Cannot import image archive", error, { path });
    }
  }
  if (JSON.stringify(after) !== JSON.stringify(before)) await writeRecords(importer.recordFile, after);
  return Object.values(after).flatMap(({ names }) => names);
}

/** `*.tar` in a directory, sorted; none when the directory does not exist. */
export async function listArchives(directory: string): Promise<readonly string[]> {
  try {
    const names = await readdir(directory);
    return names
      .filter((name) => name.endsWith(".tar"))
      .sort()
      .map((name) => join(directory, name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

async function importArchive(
  importer: ImageImporter,
  path: string,
  pinned: boolean,
  previous: ImportRecord | undefined,
  present: ReadonlySet<string>,
): Promise<ImportRecord> {
  const { size, mtimeMs } = await stat(path);
  const isPresent =
    previous !== undefined && previous.names.length > 0 && previous.names.every((name) => present.has(name));
  if (isPresent && previous.size === size && previous.mtimeMs === mtimeMs) return previous;
  const digest = await computeDigest(path);
  if (isPresent && previous.digest === digest) return { ...previous, size, mtimeMs };
  const output = await ctr(importer, ["import", "--snapshotter", importer.snapshotter, path], IMPORT_MS_MAX);
  const names = parseImportedNames(output);
  if (names.length === 0) throw new Error(`Cannot import ${path}: it contains no image name`);
  if (pinned)
    for (const name of names) await ctr(importer, ["label", name, "io.cri-containerd.pinned=pinned"], LIST_MS_MAX);
  importer.log.info("Imported image archive", { path, images: names });
  return { size, mtimeMs, digest, names };
}

/** `unpacking example.org/a:1 (sha256:…)...done`, a line for each image. */
export function parseImportedNames(output: string): readonly string[] {
  return [...output.matchAll(/^unpacking (\S+) \(sha256:/gm)].map((match) => match[1]!);
}

export async function listImages(importer: ImageImporter): Promise<readonly string[]> {
  return (await ctr(importer, ["list", "--quiet"], LIST_MS_MAX)).split("\n").filter((line) => line !== "");
}

function ctr(importer: ImageImporter, words: readonly string[], timeoutMs: number): Promise<string> {
  const { signal } = importer;
  const args = ["--address", importer.socket, "--namespace", "k8s.io", "images", ...words];
  return runCommand(importer.ctr, args, { timeoutMs, signal });
}

async function computeDigest(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return `sha256:${hash.digest("hex")}`;
}

/** Without a readable record all archives are imported again. */
async function readRecords(file: string): Promise<Records> {
  try {
    const value: unknown = JSON.parse(await readFile(file, "utf8"));
    return typeof value === "object" && value !== null ? (value as Records) : {};
  } catch {
    return {};
  }
}

async function writeRecords(file: string, records: Records): Promise<void> {
  await writeFile(`${file}.new`, `${JSON.stringify(records, undefined, 1)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}
