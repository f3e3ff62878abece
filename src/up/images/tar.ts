/** Builds a tar archive (ustar) of files in memory. It is reproducible: it contains no times and no owners. */

export interface TarEntry {
  /** Relative, with slashes; at most 100 bytes. */
  readonly path: string;
  /** The content of a file. An entry with neither data nor link is a directory. */
  readonly data?: Uint8Array;
  /** The target of a symbolic link. */
  readonly link?: string;
  readonly mode?: number;
}

const BLOCK_BYTES = 512;
const NAME_MAX_BYTES = 100;

export function tar(entries: readonly TarEntry[]): Buffer {
  const parts: Uint8Array[] = [];
  for (const entry of entries) {
    const content = entry.data ?? new Uint8Array();
    parts.push(header(entry, content.length), content, Buffer.alloc(-content.length & (BLOCK_BYTES - 1)));
  }
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK_BYTES)]);
}

function header(entry: TarEntry, size: number): Buffer {
  const directory = entry.data === undefined && entry.link === undefined;
  const name = directory && !entry.path.endsWith("/") ? `${entry.path}/` : entry.path;
  if (Buffer.byteLength(name) > NAME_MAX_BYTES)
    throw new Error(`Cannot archive ${name}: its path is too long for ustar`);
  const block = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, at: number, length: number) =>
    block.write(value.toString(8).padStart(length - 1, "0"), at, "ascii");
  block.write(name, 0, "utf8");
  octal(entry.mode ?? (directory ? 0o755 : 0o644), 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(0, 136, 12);
  block.write("        ", 148, "ascii");
  block.write(directory ? "5" : entry.link === undefined ? "0" : "2", 156, "ascii");
  if (entry.link !== undefined) block.write(entry.link, 157, "utf8");
  block.write("ustar\x0000", 257, "latin1");
  octal(
    block.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  );
  block[155] = 0x20;
  return block;
}
