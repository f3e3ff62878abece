import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";
import { applyJsonPatch, type JsonPatchOperation } from "./json-patch.ts";

const patched = (document: unknown, ...operations: readonly object[]): unknown =>
  applyJsonPatch(structuredClone(document), operations as readonly JsonPatchOperation[]);

t.test("applyJsonPatch() accepts what Kubernetes accepts beyond RFC 6902", async (t) => {
  t.same(patched({ a: 1 }, { op: "replace", path: "/b", value: 2 }), { a: 1, b: 2 });
  t.same(patched({ a: 1 }, { op: "add", path: "/b" }), { a: 1, b: null });
  t.same(patched({ a: 1 }, { op: "test", path: "/b", value: null }), { a: 1 });
  t.same(patched({ l: [1, 2] }, { op: "add", path: "/l/-1", value: 3 }), { l: [1, 2, 3] });
  t.same(patched({ l: [1, 2] }, { op: "remove", path: "/l/-2" }), { l: [2] });
  t.same(patched({ l: [1, 2] }, { op: "copy", from: "/l/-1", path: "/m" }), { l: [1, 2], m: 2 });
  t.same(patched({ a: { "-1": 1 } }, { op: "remove", path: "/a/-1" }), { a: {} }, "a member by that name");
  t.same(patched({ a: 1 }, { op: "replace", path: "", value: [] }), []);
  t.same(patched({ a: 1 }, { op: "replace", path: "", value: 5 }), { a: 1 }, "no object and no list");
  t.same(patched({ a: 1 }, { op: "test", path: "", value: { a: 1 } }), { a: 1 });
  t.same(patched({ a: 1 }, { op: "copy", from: "/b", path: "/c" }), { a: 1, c: null });
  t.same(patched({ l: [1] }, { op: "add", path: "/l/01", value: 2 }), { l: [1, 2] });
  t.same(patched({ l: [1] }, { op: "add", path: "/l/+0", value: 2 }), { l: [2, 1] });
  t.same(patched({ l: [1, { a: 1 }] }, { op: "remove", path: "/l/-1/a" }), { l: [1, {}] });
  t.same(patched({ a: { "": 1 } }, { op: "remove", path: "/a/" }), { a: {} });
});

t.test("the first part of a path is ignored, a path without a slash names nothing", async (t) => {
  const document = { a: { b: 1 } };
  for (const first of ["", "a", "x", " ", "#"]) {
    t.same(patched(document, { op: "add", path: `${first}/c`, value: 2 }), { a: { b: 1 }, c: 2 }, first);
    t.same(patched(document, { op: "remove", path: `${first}/a/b` }), { a: {} });
    t.same(patched(document, { op: "replace", path: `${first}/a/b`, value: 2 }), { a: { b: 2 } });
    t.same(patched(document, { op: "test", path: `${first}/a/b`, value: 1 }), document);
    t.same(patched(document, { op: "move", from: `${first}/a`, path: `${first}/c` }), { c: { b: 1 } });
    t.same(patched(document, { op: "copy", from: `${first}/a/b`, path: `${first}/c` }), { a: { b: 1 }, c: 1 });
    if (first === "") continue;
    for (const op of ["add", "remove", "replace", "move", "copy", "test"]) {
      t.throws(() => patched(document, { op, path: first, from: first, value: 1 }), /doc is missing/, op);
    }
  }
});

t.test("applyJsonPatch() rejects operations that do not apply", async (t) => {
  const document = { a: "x", n: null, o: {}, l: [1] };
  const rejected: readonly (readonly [object, string])[] = [
    [
      { op: "remove", path: "/b" },
      "error in remove for path: '/b': Unable to remove nonexistent key: b: missing value",
    ],
    [{ op: "add", path: "" }, 'add operation does not apply: doc is missing path: "": missing value'],
    [{ op: "add", path: "/b/c", value: 2 }, 'add operation does not apply: doc is missing path: "/b/c": missing value'],
    [{ op: "remove", path: "/b/c" }, 'remove operation does not apply: doc is missing path: "/b/c": missing value'],
    [{ op: "replace", path: "/b/c" }, "replace operation does not apply: doc is missing path: /b/c: missing value"],
    [{ op: "replace", path: "/l/1" }, "replace operation does not apply: doc is missing key: /l/1: missing value"],
    [{ op: "replace", path: "/l/-" }, "replace operation does not apply: doc is missing key: /l/-: missing value"],
    [{ op: "move", from: "/b/c", path: "/d" }, "doc is missing from path: /b/c: missing value"],
    [{ op: "move", from: "/o", path: "/o/x" }, "doc is missing destination path: /o/x: missing value"],
    [{ op: "copy", from: "/b/c", path: "/d" }, "doc is missing from path: /b/c: missing value"],
    [
      { op: "copy", from: "/l/1", path: "/d" },
      "error in copy for from: '/l/1': Unable to access invalid index: 1: invalid index referenced",
    ],
    [{ op: "copy", path: "/d" }, "copy operation failed to decode from: operation missing from field: missing value"],
    [{ op: "test", path: "/b", value: 1 }, "testing value /b failed: test failed"],
    [{ op: "test", path: "/a", value: null }, "testing value /a failed: test failed"],
    [{ op: "test", path: "/l/1", value: null }, "Unable to access invalid index"],
    [{ op: "add", path: "/l/-3", value: 2 }, "Unable to access invalid index: -3"],
    [{ op: "add", path: "/l/2", value: 2 }, "Unable to access invalid index: 2"],
    [{ op: "add", path: "/l/x", value: 2 }, "Unable to access invalid index: x"],
    [{ op: "add", path: "/l/", value: 2 }, "Unable to access invalid index"],
    [{ op: "add", path: "/l/1.0", value: 2 }, "Unable to access invalid index"],
    [{ op: "remove", path: "/l/-" }, "Unable to access invalid index: -"],
    [{ op: "frob", path: "/a" }, "Unexpected kind: frob"],
    [{ op: 5, path: "/a" }, "Unexpected kind: unknown"],
    [{ op: "ADD", path: "/b" }, "Unexpected kind: ADD"],
    [{ path: "/a" }, "Unexpected kind: unknown"],
    [{}, "Unexpected kind: unknown"],
    [{ op: "add", value: 1 }, "add operation failed to decode path: missing value"],
    [{ op: "remove", path: 5 }, "remove operation failed to decode path: operation missing path field: missing value"],
    [{ op: "add", path: "/__proto__/x", value: 2 }, "doc is missing path"],
    [{ op: "add", path: "/constructor/x", value: 2 }, "doc is missing path"],
  ];
  for (const [operation, message] of rejected) {
    let found = "";
    try {
      patched(document, operation);
    } catch (error) {
      found = (error as Error).message;
    }
    t.ok(found.includes(message), `${JSON.stringify(operation)}: ${found}`);
  }
  // A value that contains nothing is no place for a member.
  for (const parent of ["a", "n", "l/0"]) {
    for (const op of ["add", "remove", "replace", "test"]) {
      t.throws(() => patched(document, { op, path: `/${parent}/x`, value: 1 }), /doc is missing|is missing path/, op);
    }
  }
  t.equal(({} as { readonly x?: unknown }).x, undefined, "prototypes are unchanged");
  t.same(Object.keys(patched({}, { op: "add", path: "/__proto__", value: 1 }) as object), ["__proto__"]);
  t.throws(() => patched({}, ...Array(10_001).fill({ op: "test", path: "" })), { message: /10000, got 10001/ });
});

t.test("a patch can be applied to several documents", async (t) => {
  const operations = [
    { op: "add", path: "/a", value: { l: [] } },
    { op: "add", path: "/a/l/-", value: 1 },
  ];
  for (let round = 0; round < 2; round++) t.same(patched({}, ...operations), { a: { l: [1] } });
});

t.test("applyJsonPatch() compares and moves long lists in bounded time", async (t) => {
  const list = Array.from({ length: 100_000 }, (_, i) => `i${i}`);
  const began = process.cpuUsage();
  t.same(patched({ list }, { op: "test", path: "/list", value: list }), { list });
  const reversed = [...list].reverse();
  t.throws(() => patched({ list }, { op: "test", path: "/list", value: reversed }), {
    message: /test failed/,
  });
  const inserts = Array(10_000).fill({ op: "add", path: "/list/0", value: "x" });
  t.throws(() => patched({ list }, ...inserts), { message: /too often/ });
  t.equal((patched({ list: list.slice(0, 1000) }, ...inserts.slice(0, 1000)) as { list: [] }).list.length, 2000);
  t.ok(process.cpuUsage(began).user < 3_000_000, "in time");
});

interface StandardCase {
  readonly comment?: string;
  readonly doc: unknown;
  readonly patch: readonly JsonPatchOperation[];
  readonly expected?: unknown;
  readonly error?: string;
  readonly disabled?: boolean;
}

/** Errors of the standard that Kubernetes accepts. */
const forgiven: ReadonlySet<string> = new Set([
  "missing 'value' parameter",
  "Out of bounds (lower)",
  "missing from location to copy",
  "test with bad array number that has leading zeros",
]);

t.test("applyJsonPatch() passes the test cases of json-patch-tests", async (t) => {
  const { SVC_SHARED: folder = fileURLToPath(new URL("../../../shared", import.meta.url)) } = process.env;
  const files = ["tests.json", "spec_tests.json"].map((name) => `${folder}/oracles/json-patch/${name}`);
  const present = files.filter((name) => existsSync(name));
  if (present.length < files.length) console.error("shared/ is not present: 106 checks left out");
  for (const file of present) {
    for (const one of JSON.parse(readFileSync(file, "utf8")) as readonly StandardCase[]) {
      if (one.disabled === true || one.patch === undefined) continue;
      const title = one.comment ?? one.error ?? JSON.stringify(one.patch);
      if (one.patch.some(({ op, path }) => path === "" && op !== "replace" && op !== "test")) continue;
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
  t.throws(() => patched(document, ...copies(40)), /accumulated size/);
});
