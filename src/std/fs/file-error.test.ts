import { mkdir, mkdtemp, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { fileErrorText } from "./file-error.ts";

const root = await mkdtemp(join(tmpdir(), "svc-file-error-"));
t.teardown(() => rm(root, { recursive: true }));
await writeFile(join(root, "file"), "");
await mkdir(join(root, "a/b"), { recursive: true });

for (const [name, work, text] of [
  ["a missing file", () => readFile(join(root, "none")), `open ${root}/none: no such file or directory`],
  ["a file in place of a directory", () => readFile(join(root, "file/x")), `open ${root}/file/x: not a directory`],
  ["a file that exists", () => mkdir(join(root, "a")), `mkdir ${root}/a: file exists`],
  ["a directory with content", () => rmdir(join(root, "a")), `rmdir ${root}/a: directory not empty`],
  ["a long name", () => mkdir(join(root, "n".repeat(300))), `mkdir ${root}/${"n".repeat(300)}: file name too long`],
] as const) {
  t.test(`fileErrorText() has operation, path and reason for ${name}`, async (t) => {
    const error = await work().then(
      () => undefined,
      (each: unknown) => each,
    );
    t.equal(fileErrorText(error), text);
  });
}

t.test("fileErrorText() has nothing for errors without a path", async (t) => {
  t.equal(fileErrorText(new Error("x")), undefined);
  t.equal(fileErrorText("x"), undefined);
});
