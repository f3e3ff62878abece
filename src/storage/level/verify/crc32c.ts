/** CRC-32C (Castagnoli), the checksum of LevelDB's files. Node has only the polynomial of zlib. */

const POLYNOMIAL = 0x82f63b78;
/** LevelDB stores checksums rotated and with this added, since files may contain checksums of their own. */
const MASK_DELTA = 0xa282ead8;

/** Eight tables of 256 entries: table n gives the checksum of a byte that n zero bytes follow. */
const TABLES = buildTables();

export function crc32c(bytes: Uint8Array): number {
  const t = TABLES;
  let crc = -1;
  let i = 0;
  for (const end = bytes.length - 7; i < end; i += 8) {
    const low = crc ^ (bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24));
    crc =
      t[1792 + (low & 0xff)]! ^
      t[1536 + ((low >>> 8) & 0xff)]! ^
      t[1280 + ((low >>> 16) & 0xff)]! ^
      t[1024 + (low >>> 24)]! ^
      t[768 + bytes[i + 4]!]! ^
      t[512 + bytes[i + 5]!]! ^
      t[256 + bytes[i + 6]!]! ^
      t[bytes[i + 7]!]!;
  }
  for (; i < bytes.length; i++) crc = t[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

/** The checksum as LevelDB stores it. */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + MASK_DELTA) >>> 0;
}

function buildTables(): Int32Array {
  const tables = new Int32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    tables[byte] = crc;
  }
  for (let i = 256; i < tables.length; i++) {
    const shorter = tables[i - 256]!;
    tables[i] = (shorter >>> 8) ^ tables[shorter & 0xff]!;
  }
  return tables;
}
