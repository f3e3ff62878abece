/** State files of kubelet's managers: JSON with a checksum, replaced atomically. */
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** A file larger than that is not ours. */
const BYTES_MAX = 16 * 1024 * 1024;

/** FNV-1a of 32 bits, of the text as Go prints the value: the checksum of Kubernetes' checkpoints. */
export function fnv32a(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

/** Prints a map as Go's spew does, with sorted keys. */
export function printGoMap<T>(map: Readonly<Record<string, T>>, print: (value: T) => string): string {
  return `map[${sortedEntries(map)
    .map(([key, value]) => `${key}:${print(value)}`)
    .join(" ")}]`;
}

/** Prints a slice as Go's spew does; undefined is nil. */
export function printGoSlice<T>(list: readonly T[] | undefined, print: (value: T) => string = String): string {
  return list === undefined ? "<nil>" : `[${list.map(print).join(" ")}]`;
}

/** In the order of Go's encoder: by bytes. */
export function sortedEntries<T>(map: Readonly<Record<string, T>>): readonly (readonly [string, T])[] {
  return Object.entries(map).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

/** Undefined when there is no file. Rejects for one that is too large or cannot be read. */
export async function readStateFile(path: string): Promise<string | undefined> {
  try {
    const text = await readFile(path, "utf8");
    if (text.length > BYTES_MAX) throw new Error(`checkpoint has more than ${BYTES_MAX} bytes`);
    return text;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** The file has the text before or this one, also after a crash. */
export async function writeStateFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`;
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
  try {
    await writeFile(temporary, text, { mode: 0o600, flush: true });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Throws Go's message for text that is no JSON object. */
export function parseStateJson(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const isShort = error instanceof Error && /end of JSON input|Unterminated/.test(error.message);
    throw new Error(isShort ? "unexpected end of JSON input" : `invalid JSON: ${String(error)}`, { cause: error });
  }
  if (!isRecord(value)) throw new Error("json: cannot unmarshal the checkpoint: it is not an object");
  return value;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The text of a checkpoint with a wrong checksum. */
export const CORRUPT = "checkpoint is corrupted";

/** What an operator does about a state that does not fit the machine. */
export const INVALID_STATE_ADVICE = "please drain node and remove policy state file";

/** What an operator does about a state file that does not fit. */
export function explainStateError(error: unknown, manager: string, path: string): Error {
  const text = error instanceof Error ? error.message : String(error);
  const advice = `please drain this node and delete the ${manager} manager checkpoint file "${path}" before restarting`;
  return new Error(`could not restore state from checkpoint: ${text}, ${advice} Kubelet`, { cause: error });
}
