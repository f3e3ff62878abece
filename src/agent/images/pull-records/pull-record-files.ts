/** The files of the records: `image_manager/pulling` and `image_manager/pulled` in the agent's root directory. */
import { createHash } from "node:crypto";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { readStateFile, writeStateFile } from "../../resource-managers/state-file.ts";
import { formatIntent, formatPulledRecord, type PulledRecord, parseIntent, parsePulledRecord } from "./pull-record.ts";

const PREFIX = "sha256-";

interface RecordList<T> {
  readonly records: readonly T[];
  /** Files that cannot be read, with the reason. */
  readonly problems: readonly string[];
}

export class PullRecordFiles {
  readonly #pulling: string;
  readonly #pulled: string;

  private constructor(rootDir: string) {
    this.#pulling = join(rootDir, "image_manager", "pulling");
    this.#pulled = join(rootDir, "image_manager", "pulled");
  }

  static async open(rootDir: string): Promise<PullRecordFiles> {
    const files = new PullRecordFiles(rootDir);
    for (const directory of [files.#pulling, files.#pulled]) await mkdir(directory, { recursive: true, mode: 0o700 });
    return files;
  }

  async writeIntent(image: string): Promise<void> {
    await writeStateFile(pathOf(this.#pulling, image), formatIntent(image));
  }

  /** Rejects for a damaged record. */
  async hasIntent(image: string): Promise<boolean> {
    const json = await readStateFile(pathOf(this.#pulling, image));
    return json !== undefined && parseIntent(json) === image;
  }

  async deleteIntent(image: string): Promise<void> {
    await rm(pathOf(this.#pulling, image), { force: true });
  }

  listIntents(): Promise<RecordList<string>> {
    return list(this.#pulling, parseIntent);
  }

  /** Undefined when there is none. Rejects for a damaged record. */
  async readPulled(imageRef: string): Promise<PulledRecord | undefined> {
    const json = await readStateFile(pathOf(this.#pulled, imageRef));
    const record = json === undefined ? undefined : parsePulledRecord(json);
    return record?.imageRef === imageRef ? record : undefined;
  }

  async writePulled(record: PulledRecord): Promise<void> {
    await writeStateFile(pathOf(this.#pulled, record.imageRef), formatPulledRecord(record));
  }

  async deletePulled(imageRef: string): Promise<void> {
    await rm(pathOf(this.#pulled, imageRef), { force: true });
  }

  listPulled(): Promise<RecordList<PulledRecord>> {
    return list(this.#pulled, parsePulledRecord);
  }
}

/** The name is a hash, because images and ids contain slashes. */
function pathOf(directory: string, name: string): string {
  return join(directory, `${PREFIX}${createHash("sha256").update(name).digest("hex")}`);
}

async function list<T>(directory: string, parse: (json: string) => T): Promise<RecordList<T>> {
  const records: T[] = [];
  const problems: string[] = [];
  const names = await readdir(directory);
  for (const name of names.filter((each) => each.startsWith(PREFIX) && !each.endsWith(".tmp"))) {
    try {
      const json = await readStateFile(join(directory, name));
      if (json !== undefined) records.push(parse(json));
    } catch (error) {
      problems.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return { records, problems };
}
