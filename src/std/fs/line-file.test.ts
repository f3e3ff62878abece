import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { readLineFile, writeLineFile } from "./line-file.ts";

t.test("readLineFile() returns the values that writeLineFile() wrote", async (t) => {
  const path = join(t.testdir(), "file");
  const values = [{ text: "two\nlines" }, ["a", null], 1, "b"];
  t.equal(await writeLineFile(path, "header 1", values), statSync(path).size);
  t.same(await readLineFile(path, "header 1"), values);
  t.equal(readFileSync(path, "utf8").split("\n")[0], "header 1");
  await writeLineFile(path, "header 1", []);
  t.same(await readLineFile(path, "header 1"), [], "a file without values");
});

t.test("writeLineFile() replaces the file by one that only its owner can read", async (t) => {
  const path = join(t.testdir({ file: "before" }), "file");
  chmodSync(path, 0o644);
  await writeLineFile(path, "header 1", []);
  t.equal(statSync(path).mode & 0o777, 0o600);
});

t.test("readLineFile() returns undefined without a file and rejects another header, version or text", async (t) => {
  const path = join(t.testdir(), "file");
  t.equal(await readLineFile(path, "header 1"), undefined);
  await writeLineFile(path, "header 2", []);
  await t.rejects(readLineFile(path, "header 1"), { message: `${path} does not start with "header 1"` });
  writeFileSync(path, "header 1\n{");
  await t.rejects(readLineFile(path, "header 1"), { name: "SyntaxError" });
  await t.rejects(readLineFile(t.testdir(), "header 1"), { code: "EISDIR" });
});
