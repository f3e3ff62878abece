import t from "tap";
import type { Revision } from "../store.ts";
import { keyOf, readRevision, revisionOf, sameKey, versionBound, versionKey, writeRevision } from "./keys.ts";

const revision = (number: number): Revision => number as Revision;

t.test("versionKey() sorts by key, then by revision, whatever the key contains", async (t) => {
  const keys = ["/a", "/a\0", "/a\0b", "/a/1", "/a0", "/ab", "/b\u00ff", "/ü", "/\u{1f600}"];
  const revisions = [1, 2, 255, 256, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 5, Number.MAX_SAFE_INTEGER].map(revision);
  const expected = keys
    .toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    .flatMap((key) => revisions.map((r) => versionKey(key, r)));
  const sorted = expected.toSorted(Buffer.compare);
  for (const [i, bytes] of sorted.entries()) t.ok(bytes.equals(expected[i]!), `${keyOf(bytes)}@${revisionOf(bytes)}`);
  for (const key of keys) {
    for (const r of revisions) t.same([keyOf(versionKey(key, r)), revisionOf(versionKey(key, r))], [key, r]);
  }
});

t.test("versionBound() sorts before all versions of its key and after those of smaller keys", async (t) => {
  const last = versionKey("/a", revision(Number.MAX_SAFE_INTEGER));
  t.ok(Buffer.compare(last, versionBound("/a\0")) < 0);
  t.ok(Buffer.compare(versionBound("/a\0"), versionKey("/a\0", revision(1))) < 0);
  t.ok(Buffer.compare(versionBound("/a"), versionKey("/a", revision(0))) < 0);
});

t.test("sameKey() compares keys without their revisions", async (t) => {
  t.ok(sameKey(versionKey("/a", revision(1)), versionKey("/a", revision(2 ** 40))));
  t.notOk(sameKey(versionKey("/a", revision(1)), versionKey("/b", revision(1))));
  t.notOk(sameKey(versionKey("/a", revision(1)), versionKey("/ab", revision(1))));
});

t.test("writeRevision() and readRevision() agree up to 2^53", async (t) => {
  for (const number of [0, 1, 2 ** 31, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER]) {
    t.equal(readRevision(writeRevision(Buffer.alloc(8), 0, number), 0), number);
  }
});
