import { existsSync, readFileSync } from "node:fs";
import t from "tap";

const page = readFileSync(new URL("../../../docs/pod-lifecycle.md", import.meta.url), "utf8");
const recorded = Object.values(
  JSON.parse(readFileSync(new URL("../../../testdata/recorded-agent.json", import.meta.url), "utf8")) as Readonly<
    Record<string, readonly string[]>
  >,
).flat();

/** Rows `| behaviour | \`file: title\`<br>… |`. */
const rows = page.split("\n").flatMap((line) => {
  const [, behaviour = "", cell = ""] = line.split(/(?<!\\)\|/);
  const tests = [...cell.matchAll(/`(\S+): ([^`]+)`/g)].map(([, path = "", title = ""]) => ({ path, title }));
  const isHeader = /^ (?:behaviour|-*) ?$/.test(behaviour);
  return isHeader || !line.startsWith("| ") ? [] : [{ behaviour: behaviour.trim(), tests }];
});

t.test("docs/pod-lifecycle.md lists existing tests for each behaviour", async (t) => {
  t.ok(rows.length > 30, "the tables are parsed");
  for (const { behaviour, tests } of rows) {
    t.not(tests.length, 0, behaviour);
    for (const { path, title } of tests) t.ok(exists(path, title), `${path}: ${title}`);
  }
});

function exists(path: string, title: string): boolean {
  if (path === "recorded") return recorded.includes(title);
  const file = new URL(path, new URL("../../", import.meta.url));
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return text.includes(`"${title}"`) || text.includes(`\`${title}\``);
}
