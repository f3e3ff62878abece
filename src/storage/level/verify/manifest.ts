/** The content of a MANIFEST: edits, each a record, which together give the files of the database. */
import { Decoder } from "./encoding.ts";

/** The tags of the fields of an edit. 8 was used by old versions of LevelDB. */
const TAG = {
  comparator: 1,
  logNumber: 2,
  nextFileNumber: 3,
  lastSequence: 4,
  compactPointer: 5,
  deletedFile: 6,
  newFile: 7,
  previousLogNumber: 9,
} as const;

export interface TableFile {
  readonly number: number;
  readonly size: number;
  /** The first and the last key. */
  readonly smallest: Buffer;
  readonly largest: Buffer;
}

export interface Manifest {
  /** Logs of this number and higher have writes that are in no table; 0 before the first log. */
  readonly logNumber: number;
  readonly previousLogNumber: number;
  readonly lastSequence: number;
  readonly tables: readonly TableFile[];
}

/** Throws a RangeError for a record that is no edit. */
export function readManifest(records: readonly Buffer[]): Manifest {
  const tables = new Map<number, TableFile>();
  const numbers = { logNumber: 0, previousLogNumber: 0, lastSequence: 0 };
  for (const record of records) {
    // An edit deletes files before it adds others: a table that moves to another level is in both lists.
    const added: TableFile[] = [];
    for (const decoder = new Decoder(record); !decoder.done; ) {
      const tag = decoder.varint();
      if (tag === TAG.logNumber) numbers.logNumber = decoder.varint();
      else if (tag === TAG.previousLogNumber) numbers.previousLogNumber = decoder.varint();
      else if (tag === TAG.lastSequence) numbers.lastSequence = decoder.varint();
      else if (tag === TAG.newFile) added.push(readNewFile(decoder));
      else if (tag === TAG.deletedFile) {
        decoder.varint();
        tables.delete(decoder.varint());
      } else skipField(tag, decoder);
    }
    for (const table of added) tables.set(table.number, table);
  }
  return { ...numbers, tables: [...tables.values()] };
}

/** Level, number, size, smallest and largest key. */
function readNewFile(decoder: Decoder): TableFile {
  decoder.varint();
  return {
    number: decoder.varint(),
    size: decoder.varint(),
    smallest: userKey(decoder.slice()),
    largest: userKey(decoder.slice()),
  };
}

/** Without the sequence number and the type of its entry. */
function userKey(bytes: Buffer): Buffer {
  return bytes.subarray(0, Math.max(0, bytes.length - 8));
}

function skipField(tag: number, decoder: Decoder): void {
  if (tag === TAG.comparator) decoder.slice();
  else if (tag === TAG.nextFileNumber) decoder.varint();
  else if (tag === TAG.compactPointer) {
    decoder.varint();
    decoder.slice();
  } else throw new RangeError(`it has a field of the unknown type ${tag}`);
}
