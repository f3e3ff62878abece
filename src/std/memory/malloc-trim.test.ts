import { spawnSync } from "node:child_process";
import t from "tap";
import { findMallocTrim } from "./malloc-trim.ts";

t.test("findMallocTrim() writes no warning, and leaves other warnings alone", async (t) => {
  const module = JSON.stringify(new URL("malloc-trim.ts", import.meta.url).href);
  const script = `
    const { findMallocTrim } = await import(${module});
    findMallocTrim()?.();
    process.emitWarning("another");`;
  const { NODE_OPTIONS: _options, NODE_NO_WARNINGS: _noWarnings, ...env } = process.env;
  const words = ["--warnings", "--input-type=module", "-e", script];
  const { status, stderr } = spawnSync(process.execPath, words, { encoding: "utf8", env });
  t.equal(status, 0);
  t.notMatch(stderr, /FFI/);
  t.match(stderr, /another/);
});

t.test("findMallocTrim() finds nothing without the interface", async (t) => {
  const { getBuiltinModule } = process;
  t.teardown(() => {
    process.getBuiltinModule = getBuiltinModule;
  });
  process.getBuiltinModule = () => undefined;
  t.equal(findMallocTrim(), undefined);
});
