/** Files with a header, which names their format, and a JSON value in each other line. */
import { readFile, rename, writeFile } from "node:fs/promises";
import { TimeSlice } from "../async/time-slice.ts";

/** Replaces the file as a whole. Only the owner can read it. Returns its length in bytes. */
export async function writeLineFile(path: string, header: string, values: Iterable<unknown>): Promise<number> {
  const slice = new TimeSlice();
  const lines: string[] = [header];
  for (const value of values) {
    lines.push(JSON.stringify(value));
    await slice.yield();
  }
  const temporary = `${path}.new`;
  const bytes = Buffer.from(`${lines.join("\n")}\n`);
  await writeFile(temporary, bytes, { mode: 0o600 });
  await rename(temporary, path);
  return bytes.length;
}

/** Undefined when there is no file. Rejects when it has another header, or cannot be read. */
export async function readLineFile(path: string, header: string): Promise<readonly unknown[] | undefined> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const [first, ...lines] = text.trimEnd().split("\n");
  if (first !== header) throw new Error(`${path} does not start with ${JSON.stringify(header)}`);
  const slice = new TimeSlice();
  const values: unknown[] = [];
  for (const line of lines) {
    values.push(JSON.parse(line));
    await slice.yield();
  }
  return values;
}
