import t from "tap";
import type { Revision } from "../store.ts";
import {
  decodeHead,
  decodeLogEntry,
  decodeNumber,
  decodeTtlEntry,
  decodeVersion,
  encodeHead,
  encodeLogEntry,
  encodeNumber,
  encodeTtlEntry,
  encodeVersion,
} from "./record.ts";

const KEY = Buffer.from("k");
const revision = (number: number): Revision => number as Revision;

t.test("records are read as they were written", async (t) => {
  t.equal(decodeNumber(KEY, encodeNumber(KEY, 2 ** 50 + 1)), 2 ** 50 + 1);
  const head = { modified: revision(2 ** 40), created: revision(7) };
  t.same(decodeHead(KEY, encodeHead(KEY, head)), head);
  const value = Buffer.from([0, 1, 255]);
  t.same(decodeVersion(KEY, encodeVersion(KEY, revision(3), value)), { created: 3, value });
  t.same(decodeVersion(KEY, encodeVersion(KEY, revision(3), Buffer.alloc(0))), { created: 3, value: Buffer.alloc(0) });
  t.same(decodeVersion(KEY, encodeVersion(KEY, revision(3), undefined)), { created: 3, value: undefined });
  const entry = { key: "/registry/pods/ü\0", previous: revision(9) };
  t.same(decodeLogEntry(KEY, encodeLogEntry(KEY, entry)), entry);
  const ttl = { key: "/a", at: Date.UTC(2100, 0, 1) };
  t.same(decodeTtlEntry(KEY, encodeTtlEntry(KEY, ttl)), ttl);
});

t.test("a record that is truncated, has a flipped bit or another key is corrupt", async (t) => {
  const record = encodeVersion(KEY, revision(3), Buffer.from("value"));
  const error = {
    name: "StoreError",
    code: "corrupt",
    message: 'Cannot read record "k" of the embedded store: its checksum is wrong',
  };
  for (let bit = 0; bit < record.length * 8; bit++) {
    const damaged = Buffer.from(record);
    damaged[bit >> 3]! ^= 1 << (bit & 7);
    t.throws(() => decodeVersion(KEY, damaged), error);
  }
  for (let length = 0; length < record.length; length++)
    t.throws(() => decodeVersion(KEY, record.subarray(0, length)), error);
  t.throws(() => decodeVersion(Buffer.from("other"), record), { code: "corrupt", message: /record "other"/ });
});
