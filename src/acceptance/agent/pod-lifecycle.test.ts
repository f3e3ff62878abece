import { existsSync, readFileSync } from "node:fs";
import t from "tap";

const page = readFileSync(new URL("../../../docs/pod-lifecycle.md", import.meta.url), "utf8");
const recorded = Object.values(
  JSON.parse(readFileSync(new URL("../../../testdata/recorded-agent.json", import.meta.url), "utf8")) as Readonly<
    Record<string, readonly string[]>
  >,
).flat();

/** `| promise | \`file: title\`<br>… |` */
const rows = page.split("\n").flatMap((line) => {
  const [, promise = "", shown = ""] = line.split(/(?<!\\)\|/);
  const tests = [...shown.matchAll(/`(\S+): ([^`]+)`/g)].map(([, where = "", what = ""]) => ({ where, what }));
  return /^ (?:promise|-*) ?$/.test(promise) || !line.startsWith("| ") ? [] : [{ promise: promise.trim(), tests }];
});

t.test("docs/pod-lifecycle.md names a test for each promise, and each of them exists", async (t) => {
  t.ok(rows.length > 30, "there are promises");
  for (const { promise, tests } of rows) {
    t.not(tests.length, 0, promise);
    for (const { where, what } of tests) t.ok(exists(where, what), `${where}: ${what}`);
  }
});

function exists(where: string, what: string): boolean {
  if (where === "recorded") return recorded.includes(what);
  const file = new URL(where, new URL("../../", import.meta.url));
  return existsSync(file) && readFileSync(file, "utf8").includes(`"${what}"`);
}
