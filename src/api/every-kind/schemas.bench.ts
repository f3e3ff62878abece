/**
 * Run by `make bench`: the time in milliseconds and the memory in MiB to load all built-in kinds, bundled as the
 * product is, in a process of its own. The second line is a process that does nothing.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildSync } from "esbuild";

const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
const report = `
  const { heapUsed, rss } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const mebibytes = (bytes) => Number((bytes / 2 ** 20).toFixed(1));
  const cpu = Math.round((user + system) / 1000);
  const wall = Math.round(performance.now());
  console.log(JSON.stringify({ cpu, wall, heap: mebibytes(heapUsed), rss: mebibytes(rss) }));
`;
const builtin = JSON.stringify(new URL("../builtin.ts", import.meta.url).pathname);
const programs: Readonly<Record<string, string>> = {
  "every kind": `import { builtinScheme } from ${builtin}; builtinScheme();`,
  nothing: "",
};
try {
  for (const [what, program] of Object.entries(programs)) {
    const input = join(folder, "in.mjs");
    const outfile = join(folder, "out.mjs");
    writeFileSync(input, `${program}${report}`);
    buildSync({ entryPoints: [input], outfile, bundle: true, minify: true, platform: "node", format: "esm" });
    const runs = Array.from({ length: 5 }, () =>
      JSON.parse(execFileSync(process.execPath, [outfile], { encoding: "utf8" })),
    );
    const best = runs.reduce((least, run) => (run.cpu < least.cpu ? run : least));
    console.log(JSON.stringify({ ready: what, ...best }));
  }
} finally {
  rmSync(folder, { recursive: true });
}
