/** Directories for test files. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Test } from "tap";

/**
 * A directory with files for all tests of a file, removed after them. (`t.testdir()` outside a test is the same
 * directory for all test files of a process.)
 */
export function fileDirectory(t: Pick<Test, "teardown">, files: Readonly<Record<string, string>> = {}): string {
  const directory = mkdtempSync(join(tmpdir(), "svc-test-"));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}
