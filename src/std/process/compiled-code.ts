/**
 * The code that V8 compiled for the scripts of a program, kept in a file for its next start, which then compiles less.
 * build.mjs puts this module before the parts of dist/svc.
 *
 * The file has the code of one script after the other, an index as JSON (`{ [name]: [offset, length, CRC-32] }`), and
 * at its end the offset and the CRC-32 of the index. Files of other users or writable by them are ignored, and so are
 * damaged entries: V8 itself checks only the version, the flags and the length of the source.
 */
import { hash } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { cachedDataVersionTag } from "node:v8";
import type { Script } from "node:vm";
import { isMainThread } from "node:worker_threads";
import { crc32 } from "node:zlib";

/** After the start: the functions that were called until then are in the file. */
const WRITE_DELAY_MS = 20_000;
const FILE_BYTES_MAX = 64 * 1024 * 1024;
/** Of a directory: several programs, and versions of each. */
const FILES_MAX = 8;
/** Two decimal numbers. */
const TRAILER_BYTES = 24;
const FILE_TYPE_BITS = 0o170000;
const REGULAR_FILE = 0o100000;
const DIRECTORY = 0o040000;

type Entry = readonly [offset: number, length: number, checksum: number];

type Compiled = Pick<Script, "createCachedData" | "cachedDataRejected">;

/**
 * Of a program of this process, whose scripts `identity` identifies. Ignores all errors: without the file the program
 * starts as well.
 */
export function openCompiledCode(identity: string): CompiledCode {
  const directory = process.env.SVC_CODE_CACHE ?? defaultDirectory();
  const code = new CompiledCode(directory === "" ? undefined : join(directory, fileName(identity)));
  if (directory !== "" && isMainThread) setTimeout(() => void code.write().catch(() => {}), WRITE_DELAY_MS).unref();
  return code;
}

function defaultDirectory(): string {
  return join(process.getuid?.() === 0 ? "/var/cache" : process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "svc");
}

function fileName(identity: string): string {
  const { argv, execArgv, version } = process;
  const all = [identity, version, cachedDataVersionTag(), ...execArgv].join(" ");
  const command = /^[a-z-]+$/.test(argv[2] ?? "") ? `-${argv[2]}` : "";
  return `${basename(argv[1] ?? "")}${command}-${hash("sha256", all).slice(0, 32)}`;
}

export class CompiledCode {
  readonly #path: string | undefined;
  #bytes: Buffer = Buffer.alloc(0);
  #index: Readonly<Record<string, Entry>> = {};
  /** Undefined when the file has been written: what is compiled later is little. */
  #scripts: Map<string, Compiled> | undefined = new Map();
  #isComplete = true;

  /** Without a path, nothing is kept. */
  constructor(path: string | undefined) {
    this.#path = path;
    if (path === undefined) return;
    try {
      this.#read(path);
    } catch {
      // As without the file.
    }
  }

  /** The code for a script; undefined if there is none that is intact. */
  find(name: string): Buffer | undefined {
    const entry = this.#index[name];
    if (entry === undefined) return undefined;
    const code = this.#bytesOf(entry);
    return crc32(code) === entry[2] ? code : undefined;
  }

  /** `found` is what `find` returned for the script, and with what it was compiled. */
  add(name: string, script: Compiled, found: Buffer | undefined): void {
    if (found === undefined || script.cachedDataRejected === true) this.#isComplete = false;
    this.#scripts?.set(name, script);
  }

  /** Writes the file if a script was compiled without it, in several turns of the event loop. Call it once. */
  async write(): Promise<void> {
    const scripts = this.#scripts ?? new Map<string, Compiled>();
    const index = this.#index;
    this.#scripts = undefined;
    this.#index = {};
    if (this.#path !== undefined && !this.#isComplete) await this.#replace(this.#path, index, scripts);
    this.#bytes = Buffer.alloc(0);
  }

  #read(path: string): void {
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const { mode, uid, size } = fstatSync(descriptor);
      const isPrivate = (mode & (FILE_TYPE_BITS | 0o022)) === REGULAR_FILE && uid === process.getuid?.();
      if (!isPrivate || size > FILE_BYTES_MAX) return;
      const bytes = readFileSync(descriptor);
      const [start, checksum] = bytes.subarray(-TRAILER_BYTES).toString("latin1").split(" ").map(Number);
      const index = bytes.subarray(start, -TRAILER_BYTES);
      if (crc32(index) !== checksum) return;
      this.#index = JSON.parse(index.toString("latin1"));
      this.#bytes = bytes;
    } finally {
      closeSync(descriptor);
    }
  }

  async #replace(path: string, index: Readonly<Record<string, Entry>>, scripts: Map<string, Compiled>): Promise<void> {
    const directory = join(path, "..");
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const { mode, uid } = lstatSync(directory);
    if ((mode & (FILE_TYPE_BITS | 0o077)) !== DIRECTORY || uid !== process.getuid?.()) return;
    const temporary = `${path}.new-${process.pid}`;
    rmSync(temporary, { force: true });
    const descriptor = openSync(temporary, "wx", 0o600);
    try {
      const written: Record<string, Entry> = {};
      let offset = 0;
      for (const name of new Set([...Object.keys(index), ...scripts.keys()])) {
        const script = scripts.get(name);
        const code = script?.createCachedData() ?? this.#bytesOf(index[name]!);
        written[name] = [offset, code.length, script === undefined ? index[name]![2] : crc32(code)];
        offset += writeSync(descriptor, code);
        // Requests are served in between.
        await new Promise((resolve) => setImmediate(resolve));
      }
      const text = Buffer.from(JSON.stringify(written));
      const trailer = `${String(offset).padStart(12, "0")} ${String(crc32(text)).padStart(11, "0")}`;
      writeSync(descriptor, Buffer.concat([text, Buffer.from(trailer)]));
      renameSync(temporary, path);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    } finally {
      closeSync(descriptor);
    }
    removeOldFiles(directory);
  }

  #bytesOf([offset, length]: Entry): Buffer {
    return this.#bytes.subarray(offset, offset + length);
  }
}

function removeOldFiles(directory: string): void {
  const paths = readdirSync(directory).map((name) => join(directory, name));
  const byAge = paths.map((path) => ({ path, time: lstatSync(path).mtimeMs })).sort((a, b) => b.time - a.time);
  for (const { path } of byAge.slice(FILES_MAX)) rmSync(path, { force: true });
}
