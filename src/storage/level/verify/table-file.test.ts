import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Level } from "level";
import t from "tap";
import { crc32c } from "./crc32c.ts";
import { decompressSnappy } from "./snappy.ts";
import { findTableDamage, findTableDamageInSteps } from "./table-file.ts";
import { verifyDatabase } from "./verify.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-table-"));
t.teardown(() => rmSync(directory, { recursive: true }));

t.test("findTableDamage() accepts LevelDB's tables, compressed or not, with values of all sizes", async (t) => {
  for (const compression of [true, false]) {
    const path = join(directory, `${compression}`);
    const level = new Level<string, string>(path, { compression, maxFileSize: 2 ** 20 });
    for (let chunk = 0; chunk < 20; chunk++) {
      const keys = Array.from({ length: 400 }, (_, i) => `/registry/things/namespace-${chunk}/${"x".repeat(80)}${i}`);
      await level.batch(keys.map((key, i) => ({ type: "put", key, value: `${key}${"y".repeat((i * i) % 9000)}` })));
    }
    await level.close();
    await t.rejects(verifyDatabase(path, { tables: true }), { code: "foreign" }, "no damage is found first");
    const table = readdirSync(path).find((name) => name.endsWith(".ldb"));
    const bytes = readFileSync(join(path, table ?? "none"));
    t.equal(findTableDamage(bytes), undefined);
    let steps = 0;
    const verification = findTableDamageInSteps(bytes);
    let step = verification.next();
    for (; step.done !== true; step = verification.next()) {
      steps++;
      crc32c(Buffer.alloc(5000, steps));
    }
    t.equal(step.value, undefined, "others compute checksums between the steps");
    t.ok(steps > 50, `${steps} steps`);
    bytes.writeUInt8(bytes.readUInt8(5000) ^ 1, 5000);
    t.match(findTableDamage(bytes), /^the checksum of the block at offset \d+ is wrong$/);
  }
});

t.test("crc32c() is CRC-32C at every length", (t) => {
  t.equal(crc32c(Buffer.from("123456789")), 0xe3069283);
  t.equal(crc32c(Buffer.alloc(32)), 0x8a9136aa);
  t.equal(crc32c(Buffer.alloc(32, 0xff)), 0x62a8ab43);
  t.equal(crc32c(Buffer.alloc(0)), 0);
  t.equal(crc32c(Buffer.alloc(1_000_003, 0x5a)), slowCrc32c(Buffer.alloc(1_000_003, 0x5a)), "in chunks");
  const bytes = Buffer.from(Array.from({ length: 100 }, (_, i) => (i * i * 31) & 0xff));
  for (let size = 0; size < 70; size++) {
    const part = bytes.subarray(size % 7, (size % 7) + size);
    t.equal(crc32c(part), slowCrc32c(part), `${size} bytes`);
  }
  t.end();
});

t.test("decompressSnappy() reads literals and copies, and refuses other data", (t) => {
  const compressed = Buffer.concat([
    Buffer.of(26, 2 << 2),
    Buffer.from("abc"),
    Buffer.of(1 | (3 << 2), 3), // 7 bytes from 3 back: overlaps.
    Buffer.of(2 | (4 << 2), 10, 0), // 5 bytes from 10 back.
    Buffer.of(60 << 2, 2),
    Buffer.from("xyz"),
    Buffer.of(3 | (7 << 2), 3, 0, 0, 0), // 8 bytes from 3 back.
  ]);
  t.equal(decompressSnappy(compressed).toString(), "abcabcabcaabcabxyzxyzxyzxy");
  t.throws(() => decompressSnappy(compressed.subarray(0, -5)), { message: "compressed data end early" });
  t.throws(() => decompressSnappy(Buffer.of(5, 1, 9)), { message: "compressed data are wrong" });
  t.throws(() => decompressSnappy(Buffer.of(0xff, 0xff, 0xff, 0x7f, 0)), { message: /length/ });
  t.end();
});

/** Bit by bit, as the checksum is defined. */
function slowCrc32c(bytes: Uint8Array): number {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  }
  return ~crc >>> 0;
}
