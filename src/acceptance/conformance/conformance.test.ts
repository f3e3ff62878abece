/** docs/conformance.md is generated, names existing tests, and has the names of the conformance list. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { parseYaml } from "../../schema/yaml/yaml.ts";
import { readConformanceList, recordings, renderConformance, type TestName } from "./conformance-list.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const oracles = `${process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../../shared", import.meta.url))}/oracles`;
const list = readConformanceList();
const read = (path: string): string => readFileSync(join(root, path), "utf8");

t.test("docs/conformance.md is what `make docs` writes", async (t) => {
  t.equal(read("docs/conformance.md"), renderConformance(list));
});

t.test("each test of the page exists", async (t) => {
  const behaviours = Object.values(list.shown).flatMap(Object.entries<readonly TestName[]>);
  const partly = Object.entries(list.part);
  for (const [behaviour, tests] of [...behaviours, ...partly]) {
    for (const test of tests) t.equal(findMistake(test), undefined, behaviour);
  }
  const names = behaviours.map(([behaviour]) => behaviour);
  t.same(
    partly.filter(([behaviour]) => !names.includes(behaviour)),
    [],
  );
});

t.test("the page has each behaviour of the conformance list once", async (t) => {
  const path = `${oracles}/conformance-list/conformance.yaml`;
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
  const named = Object.entries(list.shown).flatMap(([sig, behaviours]) =>
    Object.keys(behaviours).map((name) => [sig, name]),
  );
  t.same(named.map(String).sort(), expected.map(String).sort());
});

/** Undefined when the test exists. */
function findMistake(test: TestName): string | undefined {
  const [, path = "", title = ""] = /^(\S+): (.+)$/.exec(test) ?? [];
  const recording = recordings[path];
  if (recording === undefined) {
    const text = /^src\/.*\.ts$/.test(path) && existsSync(join(root, path)) ? read(path) : "";
    return ['"', "`", "'"].some((quote) => text.includes(`${quote}${title}${quote}`)) ? undefined : `no test ${test}`;
  }
  const ids = globSync(recording.list, { cwd: root }).flatMap((list) => {
    return Object.values(JSON.parse(read(list)) as Readonly<Record<string, readonly string[]>>).flat();
  });
  if (ids.includes(title) !== (recording.lists === "agreeing")) return `${test} differs from its recording`;
  return isRecorded(path, title) ? undefined : `no case ${test}`;
}

/** True as well where the recordings are not present. */
function isRecorded(recording: string, id: string): boolean {
  const files = globSync(`${oracles}/${recording}/*.jsonl`);
  return files.length === 0 || files.some((file) => recordedText(file).includes(`"id":"${id}"`));
}

const texts = new Map<string, string>();

function recordedText(file: string): string {
  const text = texts.get(file) ?? readFileSync(file, "utf8");
  texts.set(file, text);
  return text;
}
