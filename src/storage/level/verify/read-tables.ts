import { open } from "node:fs/promises";
import { join } from "node:path";

export interface TableToRead {
  readonly name: string;
  /** In bytes. */
  readonly size: number;
}

interface TableContent<T extends TableToRead> {
  readonly table: T;
  /** Valid until the next table. */
  readonly bytes: Buffer;
}

/** Reads tables one after another, each while the caller works on the one before. Keeps two of them in memory. */
export async function* readTables<T extends TableToRead>(
  path: string,
  tables: readonly T[],
): AsyncGenerator<TableContent<T>> {
  const largest = Math.max(0, ...tables.map(({ size }) => size));
  const buffers = [Buffer.allocUnsafeSlow(largest), Buffer.allocUnsafeSlow(largest)] as const;
  const read = (index: number): Promise<Buffer> | undefined => {
    const table = tables[index];
    if (table === undefined) return undefined;
    const reading = readTable(join(path, table.name), buffers[index % 2 === 0 ? 0 : 1].subarray(0, table.size));
    // The caller may end before it receives a failure.
    reading.catch(() => {});
    return reading;
  };
  let next = read(0);
  try {
    for (const [index, table] of tables.entries()) {
      const bytes = await next!;
      next = read(index + 1);
      yield { table, bytes };
    }
  } finally {
    await next?.catch(() => {});
  }
}

/** One call of the file system for the content, where `readFile` makes one for each 512 KiB. */
async function readTable(path: string, target: Buffer): Promise<Buffer> {
  const file = await open(path, "r");
  try {
    let length = 0;
    while (length < target.length) {
      const { bytesRead } = await file.read(target, length, target.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return target.subarray(0, length);
  } catch (error) {
    // Node's error names the file when it cannot be opened, and not when it cannot be read.
    if (error instanceof Error && !error.message.includes(path)) error.message += ` '${path}'`;
    throw error;
  } finally {
    await file.close();
  }
}
