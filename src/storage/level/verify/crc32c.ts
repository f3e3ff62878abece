/**
 * CRC-32C (Castagnoli), the checksum of LevelDB's files. Node has only the polynomial of zlib. The start of a server
 * computes it over the whole store, so it is WebAssembly, which is fast from its first call on; the same in JavaScript
 * takes three times as long in a new process.
 */

const POLYNOMIAL = 0x82f63b78;
/** LevelDB stores checksums rotated and with this added, since files may contain checksums of their own. */
const MASK_DELTA = 0xa282ead8;

/** Sixteen tables of 256 entries: table n gives the checksum of a byte that n zero bytes follow. */
const TABLES = 16;
const TABLE_BYTES = 256 * 4;
/** The memory: the tables, then the bytes. */
const DATA_OFFSET = TABLES * TABLE_BYTES;
const PAGE_BYTES = 65_536;

interface Memory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): void;
}

/** The part in use: the types of Node have no WebAssembly. */
declare const WebAssembly: {
  readonly Memory: new (limits: { readonly initial: number }) => Memory;
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: { readonly crc32c: Crc32c } };
};

/** The checksum of `length` bytes of the memory. */
type Crc32c = (position: number, length: number) => number;

let instance: { readonly memory: Memory; readonly crc32c: Crc32c } | undefined;

export function crc32c(bytes: Uint8Array): number {
  return crc32cOfParts(bytes)(0, bytes.length);
}

/** Copies the bytes once for the checksums of many parts of them. The function is valid until the next call. */
export function crc32cOfParts(bytes: Uint8Array): (start: number, end: number) => number {
  instance ??= instantiate();
  const { memory, crc32c } = instance;
  const missing = DATA_OFFSET + bytes.length - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / PAGE_BYTES));
  new Uint8Array(memory.buffer, DATA_OFFSET).set(bytes);
  return (start, end) => crc32c(DATA_OFFSET + start, end - start) >>> 0;
}

/** The checksum as LevelDB stores it. */
export function maskCrc32c(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + MASK_DELTA) >>> 0;
}

function instantiate(): NonNullable<typeof instance> {
  const memory = new WebAssembly.Memory({ initial: 1 });
  fillTables(new Int32Array(memory.buffer, 0, TABLES * 256));
  const module = new WebAssembly.Module(encodeModule(crcFunction()));
  return { memory, ...new WebAssembly.Instance(module, { env: { memory } }).exports };
}

function fillTables(tables: Int32Array): void {
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    tables[byte] = crc;
  }
  for (let i = 256; i < tables.length; i++) {
    const shorter = tables[i - 256]!;
    tables[i] = (shorter >>> 8) ^ tables[shorter & 0xff]!;
  }
}

type Code = readonly number[];

/** The numbers of local variables; the first two are the parameters. */
const POSITION = 0;
const LENGTH = 1;
const CRC = 2;
const END = 3;
const WORD = 4;

const ADD = 0x6a;
const SUBTRACT = 0x6b;
const AND = 0x71;
const XOR = 0x73;
const SHIFT_LEFT = 0x74;
const SHIFT_RIGHT = 0x76;
const GREATER_OR_EQUAL = 0x4f;
const END_BLOCK = 0x0b;

const get = (local: number): Code => [0x20, local];
const set = (local: number): Code => [0x21, local];
const constant = (value: number): Code => [0x41, ...signed(value)];
const loadWord = (offset: number): Code => [0x28, 0, ...unsigned(offset)];
const loadByte: Code = [0x2d, 0, 0];

/** `crc32c(position, length)`: 16 bytes at a time, then single bytes. */
function crcFunction(): Code {
  const threeLocals = [1, 3, 0x7f];
  return [
    ...threeLocals,
    ...[...constant(-1), ...set(CRC)],
    ...[...get(POSITION), ...get(LENGTH), ADD, ...set(LENGTH)],
    ...[...get(LENGTH), ...get(POSITION), SUBTRACT, ...constant(-16), AND, ...get(POSITION), ADD, ...set(END)],
    ...repeatToEnd(16, [
      ...[...nextWord(0), ...get(CRC), XOR, ...lookUpWord(12)],
      ...[...nextWord(4), ...lookUpWord(8), XOR],
      ...[...nextWord(8), ...lookUpWord(4), XOR],
      ...[...nextWord(12), ...lookUpWord(0), XOR, ...set(CRC)],
    ]),
    ...[...get(LENGTH), ...set(END)],
    ...repeatToEnd(1, [
      ...[...get(POSITION), ...loadByte, ...get(CRC), XOR, ...set(WORD), ...lookUpByte(0, 0)],
      ...[...get(CRC), ...constant(8), SHIFT_RIGHT, XOR, ...set(CRC)],
    ]),
    ...[...get(CRC), ...constant(-1), XOR, END_BLOCK],
  ];
}

/** Runs the code at each position up to the end, `step` bytes apart. */
function repeatToEnd(step: number, code: Code): Code {
  const leave = [...get(POSITION), ...get(END), GREATER_OR_EQUAL, 0x0d, 1];
  const advance = [...get(POSITION), ...constant(step), ADD, ...set(POSITION), 0x0c, 0];
  return [0x02, 0x40, 0x03, 0x40, ...leave, ...code, ...advance, END_BLOCK, END_BLOCK];
}

const nextWord = (offset: number): Code => [...get(POSITION), ...loadWord(offset)];

/** The four bytes of the word on the stack, of which the last one is looked up in table `table`. */
function lookUpWord(table: number): Code {
  const [first, second, third, last] = [0, 1, 2, 3].map((byte) => lookUpByte(byte, table + 3 - byte));
  return [...set(WORD), ...first!, ...second!, XOR, ...third!, XOR, ...last!, XOR];
}

function lookUpByte(byte: number, table: number): Code {
  const index = [...get(WORD), ...constant(8 * byte), SHIFT_RIGHT, ...constant(0xff), AND, ...constant(2), SHIFT_LEFT];
  return [...index, ...loadWord(table * TABLE_BYTES)];
}

/** A module that imports `env.memory` and exports `crc32c`. */
function encodeModule(code: Code): Uint8Array<ArrayBuffer> {
  const name = (text: string): Code => [text.length, ...Buffer.from(text)];
  const section = (id: number, ...content: Code): Code => [id, ...unsigned(content.length), ...content];
  const header = [0, ...Buffer.from("asm"), 1, 0, 0, 0];
  const type = section(1, 1, 0x60, 2, 0x7f, 0x7f, 1, 0x7f);
  const imports = section(2, 1, ...name("env"), ...name("memory"), 2, 0, 1);
  const exports = section(7, 1, ...name("crc32c"), 0, 0);
  const functions = section(10, 1, ...unsigned(code.length), ...code);
  return Uint8Array.from([...header, ...type, ...imports, ...section(3, 1, 0), ...exports, ...functions]);
}

function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

function signed(value: number): number[] {
  return value >= -64 && value < 64 ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signed(value >> 7)];
}
