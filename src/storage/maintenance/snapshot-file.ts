/**
 * Files with a snapshot: a line that names the format, then frames. A frame is the length of its payload (4 bytes, big
 * end first), the payload's CRC-32 (4) and the payload, which starts with its type: `H` for the header, `I` for an
 * item, `E` for the end. The end has the number of items and the SHA-256 of all bytes before its frame, so that a file
 * that was cut off or changed is refused.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { access, type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { binary, int64, message, optional, string } from "../../schema/define.ts";
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import { syncDirectory } from "../../std/fs/sync-directory.ts";
import type { Revision } from "../store.ts";
import type { Snapshot, SnapshotItem } from "./snapshot.ts";

const FORMAT = Buffer.from("svc-kvstore-snapshot/1\n");
const FRAME_BYTES = 8;
/** No item is larger: values have at most 1.5 MiB, keys much less. */
const PAYLOAD_BYTES_MAX = 64 * 2 ** 20;
const TYPE = { header: 0x48, item: 0x49, end: 0x45 } as const;
const PART_BYTES = 2 ** 20;

const itemMessage = message("svc.KvstoreSnapshotItem", {
  key: optional(1, string),
  value: optional(2, binary),
  created: optional(3, int64),
  modified: optional(4, int64),
  expiresAt: optional(5, int64),
});

interface Header {
  readonly revision: number;
}

interface End {
  readonly items: number;
  readonly sha256: string;
}

/** Resolves with the number of items. The file appears when it is complete and on disk; an existing one is kept. */
export async function writeSnapshotFile(path: string, snapshot: Snapshot): Promise<number> {
  if (await exists(path)) throw new Error(`Cannot write ${path}: the file exists`);
  const partial = `${path}.partial`;
  await rm(partial, { force: true });
  try {
    const file = await open(partial, "wx", 0o600);
    let items: number;
    try {
      items = await writeFrames(file, snapshot);
      await file.sync();
    } finally {
      await file.close();
    }
    if (await exists(path)) throw new Error(`Cannot write ${path}: the file exists`);
    await rename(partial, path);
    await syncDirectory(dirname(path));
    return items;
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

async function writeFrames(file: FileHandle, snapshot: Snapshot): Promise<number> {
  const hash = createHash("sha256");
  const write = async (parts: readonly Buffer[]): Promise<void> => {
    const bytes = Buffer.concat(parts);
    hash.update(bytes);
    await file.writeFile(bytes);
  };
  const header: Header = { revision: snapshot.revision };
  await write([FORMAT, frame(TYPE.header, Buffer.from(JSON.stringify(header)))]);
  let items = 0;
  for await (const part of snapshot.parts()) {
    items += part.length;
    await write(part.map((item) => frame(TYPE.item, encodeItem(item))));
  }
  const end: End = { items, sha256: hash.copy().digest("hex") };
  await write([frame(TYPE.end, Buffer.from(JSON.stringify(end)))]);
  return items;
}

/** Reads the whole file once and verifies it. Rejects with an error that says what is wrong. */
export async function openSnapshotFile(path: string): Promise<Snapshot> {
  const fail = (why: string): never => {
    throw new Error(`Cannot use ${path}: ${why}`);
  };
  const hash = createHash("sha256").update(FORMAT);
  let header: Header | undefined;
  let end: End | undefined;
  let items = 0;
  for await (const { type, payload, bytes } of readFrames(path)) {
    if (end !== undefined) fail("data follow its end");
    if ((type === TYPE.header) !== (header === undefined)) fail("it does not have one header, at its start");
    if (type === TYPE.end) {
      end = JSON.parse(payload.toString()) as End;
      if (end.sha256 !== hash.digest("hex")) fail("its checksum is wrong: it was changed");
    } else if (type === TYPE.item) items++;
    else if (type === TYPE.header) header = JSON.parse(payload.toString()) as Header;
    else fail("it has a frame of an unknown type");
    if (end === undefined) hash.update(bytes);
  }
  if (header === undefined || end === undefined) return fail("it is incomplete: its end is missing");
  if (end.items !== items) fail(`it has ${items} items instead of ${end.items}`);
  if (!Number.isSafeInteger(header.revision) || header.revision < 1) fail("its revision is not a number above 0");
  return { revision: header.revision as Revision, parts: () => readItems(path) };
}

async function* readItems(path: string): AsyncIterable<readonly SnapshotItem[]> {
  let items: SnapshotItem[] = [];
  let size = 0;
  for await (const { type, payload } of readFrames(path)) {
    if (type !== TYPE.item) continue;
    items.push(decodeItem(payload));
    size += payload.length;
    if (size < PART_BYTES) continue;
    yield items;
    [items, size] = [[], 0];
  }
  if (items.length > 0) yield items;
}

interface Frame {
  readonly type: number;
  readonly payload: Buffer;
  /** The whole frame, with length and checksum. */
  readonly bytes: Buffer;
}

async function* readFrames(path: string): AsyncIterable<Frame> {
  let rest: Buffer = Buffer.alloc(0);
  let hasFormat = false;
  for await (const chunk of createReadStream(path, { highWaterMark: PART_BYTES }) as AsyncIterable<Buffer>) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    if (!hasFormat) {
      if (rest.length < FORMAT.length) continue;
      if (!rest.subarray(0, FORMAT.length).equals(FORMAT)) break;
      hasFormat = true;
      rest = rest.subarray(FORMAT.length);
    }
    while (rest.length >= FRAME_BYTES) {
      const length = rest.readUInt32BE(0);
      if (length === 0 || length > PAYLOAD_BYTES_MAX) throw new Error(`Cannot use ${path}: it is damaged`);
      if (rest.length < FRAME_BYTES + length) break;
      const bytes = rest.subarray(0, FRAME_BYTES + length);
      rest = rest.subarray(bytes.length);
      const payload = bytes.subarray(FRAME_BYTES);
      if (crc32(payload) !== bytes.readUInt32BE(4)) throw new Error(`Cannot use ${path}: it is damaged`);
      yield { type: payload[0]!, payload: payload.subarray(1), bytes };
    }
  }
  if (!hasFormat) throw new Error(`Cannot use ${path}: it is not a snapshot of svc kvstore`);
  if (rest.length > 0) throw new Error(`Cannot use ${path}: it is incomplete: its end is missing`);
}

function frame(type: number, content: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(FRAME_BYTES + 1 + content.length);
  bytes.writeUInt32BE(1 + content.length, 0);
  bytes[FRAME_BYTES] = type;
  content.copy(bytes, FRAME_BYTES + 1);
  bytes.writeUInt32BE(crc32(bytes.subarray(FRAME_BYTES)), 4);
  return bytes;
}

function encodeItem({ expiresAt, ...item }: SnapshotItem): Buffer {
  return Buffer.from(encodeProtobuf(itemMessage, { ...item, ...(expiresAt !== undefined && { expiresAt }) }));
}

function decodeItem(payload: Buffer): SnapshotItem {
  const { key = "", value, created = 0, modified = 0, expiresAt } = decodeProtobuf(itemMessage, payload);
  return {
    key,
    value: value ?? new Uint8Array(0),
    created: created as Revision,
    modified: modified as Revision,
    // 0 is the zero value of the message.
    ...(expiresAt !== undefined && expiresAt !== 0 && { expiresAt }),
  };
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
