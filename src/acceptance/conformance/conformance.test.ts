/** docs/conformance.md is generated, and has the behaviours of the conformance list with the tests that exist. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { parseYaml } from "../../schema/yaml/yaml.ts";
import { alone, concurrent, sample, waiting } from "./behaviours.ts";
import { readConformanceList, renderConformance } from "./conformance-list.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../../shared", import.meta.url));
const list = readConformanceList();
const files = Object.values(list).flatMap((behaviours) => Object.entries(behaviours));

t.test("docs/conformance.md is what `make docs` writes", async (t) => {
  t.equal(readFileSync(join(root, "docs/conformance.md"), "utf8"), renderConformance(list));
});

t.test("the page names the file of each test", async (t) => {
  const named = files.filter(([, file]) => file !== "");
  const tests = Object.keys({ ...waiting, ...concurrent, ...alone });
  t.same(named.map(([behaviour]) => behaviour).sort(), tests.sort());
  for (const [behaviour, file] of named) {
    const text = readFileSync(join(root, file), "utf8");
    t.ok(
      ['"', "'"].some((quote) => text.includes(`${quote}${behaviour}${quote}`)),
      `${file} shows ${behaviour}`,
    );
  }
  t.same(
    sample.filter((behaviour) => !tests.includes(behaviour)),
    [],
  );
});

t.test("the page has each behaviour of the conformance list once", async (t) => {
  const path = `${shared}/oracles/conformance-list/conformance.yaml`;
  if (!existsSync(path)) return t.comment("Skipped: shared/ is not present");
  const [document] = parseYaml(readFileSync(path, "utf8"));
  const entries = (document?.value ?? []) as readonly { readonly codename: string }[];
  const expected = entries.map(({ codename }) => {
    const [sig = "", ...words] = codename.split(" ");
    return [
      sig.slice(1, -1),
      words
        .join(" ")
        .replaceAll(/ *\[[^\]]*\]/g, "")
        .trim(),
    ];
  });
  const named = Object.entries(list).flatMap(([sig, behaviours]) => Object.keys(behaviours).map((name) => [sig, name]));
  t.same(named.map(String).sort(), expected.map(String).sort());
});
