import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Operation } from "rfc6902";
import t from "tap";
import { applyJsonPatch } from "./json-patch.ts";

const patched = (document: unknown, ...operations: readonly object[]): unknown =>
  applyJsonPatch(structuredClone(document), operations as readonly Operation[]);

t.test("applyJsonPatch() accepts what Kubernetes accepts beyond RFC 6902", async (t) => {
  t.same(patched({ a: 1 }, { op: "replace", path: "/b", value: 2 }), { a: 1, b: 2 });
  t.same(patched({ a: 1 }, { op: "add", path: "/b" }), { a: 1, b: null });
  t.same(patched({ a: 1 }, { op: "test", path: "/b", value: null }), { a: 1 });
  t.same(patched({ l: [1, 2] }, { op: "add", path: "/l/-1", value: 3 }), { l: [1, 2, 3] });
  t.same(patched({ l: [1, 2] }, { op: "remove", path: "/l/-2" }), { l: [2] });
  t.same(patched({ l: [1, 2] }, { op: "copy", from: "/l/-1", path: "/m" }), { l: [1, 2], m: 2 });
  t.same(patched({ a: { "-1": 1 } }, { op: "remove", path: "/a/-1" }), { a: {} }, "a member by that name");
  t.same(patched({ a: 1 }, { op: "replace", path: "", value: [] }), []);
});

t.test("applyJsonPatch() rejects invalid operations", async (t) => {
  const rejects = (document: unknown, ...operations: readonly object[]): void => {
    t.throws(() => patched(document, ...operations), { message: /rejected our request/ }, JSON.stringify(operations));
  };
  rejects({ a: 1 }, { op: "remove", path: "/b" });
  rejects({ a: 1 }, { op: "replace", path: "/b/c", value: 2 });
  rejects({ a: 1 }, { op: "test", path: "/b", value: 1 });
  rejects({ l: [1] }, { op: "replace", path: "/l/1", value: 2 });
  rejects({ l: [1] }, { op: "add", path: "/l/-3", value: 2 });
  rejects({ a: 1 }, { op: "add", path: "b", value: 2 });
  rejects({ a: 1 }, { op: "add", path: "/__proto__/x", value: 2 });
  t.equal(({} as { readonly x?: unknown }).x, undefined, "prototypes are unchanged");
  t.throws(() => patched({}, ...Array(10_001).fill({ op: "test", path: "" })), { message: /10000, got 10001/ });
});

t.test("applyJsonPatch() compares and moves long lists in bounded time", async (t) => {
  const list = Array.from({ length: 100_000 }, (_, i) => `i${i}`);
  const began = process.cpuUsage();
  t.same(patched({ list }, { op: "test", path: "/list", value: list }), { list });
  const reversed = [...list].reverse();
  t.throws(() => patched({ list }, { op: "test", path: "/list", value: reversed }), {
    message: /rejected our request/,
  });
  const inserts = Array(10_000).fill({ op: "add", path: "/list/0", value: "x" });
  t.throws(() => patched({ list }, ...inserts), { message: /too often/ });
  t.equal((patched({ list: list.slice(0, 1000) }, ...inserts.slice(0, 1000)) as { list: [] }).list.length, 2000);
  t.ok(process.cpuUsage(began).user < 3_000_000, "in time");
});

interface StandardCase {
  readonly comment?: string;
  readonly doc: unknown;
  readonly patch: readonly Operation[];
  readonly expected?: unknown;
  readonly error?: string;
  readonly disabled?: boolean;
}

/** Errors of the standard that Kubernetes accepts. */
const forgiven: ReadonlySet<string> = new Set(["missing 'value' parameter", "Out of bounds (lower)"]);

t.test("applyJsonPatch() passes the test cases of json-patch-tests", async (t) => {
  const { SVC_SHARED: folder = fileURLToPath(new URL("../../../shared", import.meta.url)) } = process.env;
  const files = ["tests.json", "spec_tests.json"].map((name) => `${folder}/oracles/json-patch/${name}`);
  const present = files.filter((name) => existsSync(name));
  if (present.length < files.length) console.error("shared/ is not present: 106 checks left out");
  for (const file of present) {
    for (const one of JSON.parse(readFileSync(file, "utf8")) as readonly StandardCase[]) {
      if (one.disabled === true || one.patch === undefined) continue;
      const title = one.comment ?? one.error ?? JSON.stringify(one.patch);
      if (one.error === undefined) {
        t.same(patched(one.doc, ...one.patch), one.expected ?? one.doc, title);
      } else if (!forgiven.has(one.error) && !forgiven.has(title))
        t.throws(() => patched(one.doc, ...one.patch), title);
    }
  }
});

t.test("applyJsonPatch() rejects copies of more than 3 MiB in all", async (t) => {
  const copies = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ op: "copy", from: "/a", path: `/a/c${i}` }));
  const document = { a: { k: "x".repeat(1000) } };
  t.equal(JSON.stringify(patched(document, ...copies(4))).length > 15_000, true);
  t.throws(() => patched(document, ...copies(40)), /rejected/);
});
