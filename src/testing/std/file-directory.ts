/** For tests. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Test } from "tap";

/**
 * A directory with files, for a whole file of tests, until its tests have ended: `t.testdir()` outside a test is one
 * and the same for all files of a process.
 */
export function fileDirectory(t: Pick<Test, "teardown">, files: Readonly<Record<string, string>> = {}): string {
  const directory = mkdtempSync(join(tmpdir(), "svc-test-"));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}
