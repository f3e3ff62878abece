import { existsSync, globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";

const src = new URL("../../", import.meta.url);
const page = readFileSync(new URL("../docs/security.md", src), "utf8");
const attacks = page.slice(page.indexOf("## Attacks"));

/** `| attack | \`file: title\`<br>… |` */
const rows = attacks.split("\n").flatMap((line) => {
  const [, attack = "", shown = ""] = line.split(/(?<!\\)\|/);
  const tests = [...shown.matchAll(/`(\S+): ([^`]+)`/g)].map(([, where = "", what = ""]) => ({ where, what }));
  return /^ (?:attack|-*) ?$/.test(attack) || !line.startsWith("| ") ? [] : [{ attack: attack.trim(), tests }];
});

const TITLE = /t\.test\(\s*(["`])(.*?)\1/g;
const titlesOf = (file: URL): readonly string[] =>
  [...readFileSync(file, "utf8").matchAll(TITLE)].map(([, , title = ""]) => title);

t.test("docs/security.md names an existing test for each attack", async (t) => {
  t.ok(rows.length > 40, "there are attacks");
  for (const { attack, tests } of rows) {
    t.not(tests.length, 0, attack);
    for (const { where, what } of tests) {
      const file = new URL(where, src);
      t.ok(existsSync(file) && titlesOf(file).includes(what), `${where}: ${what}`);
    }
  }
});

t.test("docs/security.md names every test of this folder", async (t) => {
  const listed = new Set(rows.flatMap(({ tests }) => tests.map(({ where, what }) => `${where}: ${what}`)));
  const cwd = fileURLToPath(src);
  for (const where of globSync(["acceptance/attacks/*.test.ts", "agent/server/attacks.test.ts"], { cwd })) {
    if (where.endsWith("/document.test.ts")) continue;
    for (const what of titlesOf(new URL(where, src))) t.ok(listed.has(`${where}: ${what}`), `${where}: ${what}`);
  }
});
