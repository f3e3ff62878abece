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
const PAGES = 2;
const DATA_BYTES = PAGES * 65_536 - DATA_OFFSET;

/** The part in use: the types of Node have no WebAssembly. */
declare const WebAssembly: {
  readonly Memory: new (limits: { readonly initial: number }) => { readonly buffer: ArrayBuffer };
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: Pick<Crc, "update"> };
};

interface Crc {
  readonly data: Uint8Array;
  /** Continues `crc` with `length` bytes of `data`. */
  readonly update: (crc: number, length: number) => number;
}

let instance: Crc | undefined;

export function crc32c(bytes: Uint8Array): number {
  instance ??= instantiate();
  const { data, update } = instance;
  let crc = -1;
  for (let start = 0; start < bytes.length; start += DATA_BYTES) {
    const chunk = start === 0 && bytes.length <= DATA_BYTES ? bytes : bytes.subarray(start, start + DATA_BYTES);
    data.set(chunk);
    crc = update(crc, chunk.length);
  }
  return ~crc >>> 0;
}

/** The checksum as LevelDB stores it. */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + MASK_DELTA) >>> 0;
}

function instantiate(): Crc {
  const memory = new WebAssembly.Memory({ initial: PAGES });
  fillTables(new Int32Array(memory.buffer, 0, TABLES * 256));
  const module = new WebAssembly.Module(encodeModule(updateFunction()));
  const { update } = new WebAssembly.Instance(module, { env: { memory } }).exports;
  return { data: new Uint8Array(memory.buffer, DATA_OFFSET), update };
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
const CRC = 0;
const LENGTH = 1;
const POSITION = 2;
const END = 3;
const WORD = 4;

const ADD = 0x6a;
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

/** `update(crc, length)`: 16 bytes at a time, then single bytes. */
function updateFunction(): Code {
  const threeLocals = [1, 3, 0x7f];
  return [
    ...threeLocals,
    ...[...constant(DATA_OFFSET), ...set(POSITION)],
    ...[...get(POSITION), ...get(LENGTH), ...constant(-16), AND, ADD, ...set(END)],
    ...repeatToEnd(16, [
      ...[...nextWord(0), ...get(CRC), XOR, ...lookUpWord(12)],
      ...[...nextWord(4), ...lookUpWord(8), XOR],
      ...[...nextWord(8), ...lookUpWord(4), XOR],
      ...[...nextWord(12), ...lookUpWord(0), XOR, ...set(CRC)],
    ]),
    ...[...constant(DATA_OFFSET), ...get(LENGTH), ADD, ...set(END)],
    ...repeatToEnd(1, [
      ...[...get(POSITION), ...loadByte, ...get(CRC), XOR, ...set(WORD), ...lookUpByte(0, 0)],
      ...[...get(CRC), ...constant(8), SHIFT_RIGHT, XOR, ...set(CRC)],
    ]),
    ...[...get(CRC), END_BLOCK],
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

/** A module that imports `env.memory` and exports `update`. */
function encodeModule(code: Code): Uint8Array<ArrayBuffer> {
  const name = (text: string): Code => [text.length, ...Buffer.from(text)];
  const section = (id: number, ...content: Code): Code => [id, ...unsigned(content.length), ...content];
  const header = [0, ...Buffer.from("asm"), 1, 0, 0, 0];
  const type = section(1, 1, 0x60, 2, 0x7f, 0x7f, 1, 0x7f);
  const imports = section(2, 1, ...name("env"), ...name("memory"), 2, 0, PAGES);
  const exports = section(7, 1, ...name("update"), 0, 0);
  const functions = section(10, 1, ...unsigned(code.length), ...code);
  return Uint8Array.from([...header, ...type, ...imports, ...section(3, 1, 0), ...exports, ...functions]);
}

function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

function signed(value: number): number[] {
  return value >= -64 && value < 64 ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signed(value >> 7)];
}
