import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { fileDirectory } from "./file-directory.ts";

t.test("fileDirectory() creates another directory each time, and removes it", (t) => {
  const ends: (() => unknown)[] = [];
  const owner = { teardown: (end: () => unknown) => void ends.push(end) };
  const one = fileDirectory(owner, { a: "1" });
  const other = fileDirectory(owner);
  t.not(one, other);
  t.equal(readFileSync(join(one, "a"), "utf8"), "1");
  for (const end of ends) end();
  t.equal(existsSync(one), false);
  t.equal(existsSync(other), false);
  t.end();
});
