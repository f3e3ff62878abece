/**
 * Compares the responses to creates, updates, patches and subresource writes of every kind with those recorded of a
 * Kubernetes 1.33 server. `testdata/recorded-differences/KIND.json` lists the ids that differ by reason; none may be
 * added. With SVC_KIND=Deployment the test prints the differences of that kind, with SVC_RECORD=1 also it removes ids
 * that agree now. `messages.json` lists those whose message or list of causes is not the recorded one in every letter:
 *
 *     SVC_KIND=Deployment SVC_RECORD=1 node src/acceptance/recorded-answers/validation.test.ts
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";
import { type Outcome, recordedCases, replay } from "./cases.ts";
import { RecordedDifferences } from "./recorded-differences.ts";

const folder = fileURLToPath(new URL("../../../testdata/recorded-differences/", import.meta.url));
const UNEXPLAINED = "unexplained";
const wanted = process.env.SVC_KIND;
const record = process.env.SVC_RECORD === "1";

type Differences = Readonly<Record<string, readonly string[]>>;

function readDifferences(kind: string): Differences {
  const path = `${folder}${kind}.json`;
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Differences) : {};
}

/** Listed ids keep their reason as long as they differ. */
function write(kind: string, known: Differences, differing: ReadonlySet<string>): void {
  const kept = Object.entries(known).map(([reason, ids]) => [reason, ids.filter((id) => differing.has(id))] as const);
  const explained = new Set(kept.filter(([reason]) => reason !== UNEXPLAINED).flatMap(([, ids]) => ids));
  const others = [...differing].filter((id) => !explained.has(id)).sort();
  const reasons = kept.filter(([reason, ids]) => reason !== UNEXPLAINED && ids.length > 0);
  if (others.length > 0) reasons.push([UNEXPLAINED, others]);
  mkdirSync(folder, { recursive: true });
  const path = `${folder}${kind}.json`;
  if (reasons.length === 0) rmSync(path, { force: true });
  else writeFileSync(path, `${JSON.stringify(Object.fromEntries(reasons), undefined, 1)}\n`);
}

t.test("responses are those of a Kubernetes 1.33 server", async (t) => {
  const cases = recordedCases();
  if (cases === undefined) {
    t.comment("Skipped: shared/ is not present");
    return;
  }
  const outcomes = await replay(cases.filter(({ kind }) => wanted === undefined || wanted === kind));
  const byKind = Map.groupBy(outcomes, (outcome) => outcome.case.kind);
  let agreed = 0;
  for (const [kind, found] of byKind) {
    const differing = found.filter(({ differences }) => differences.length > 0);
    agreed += found.length - differing.length;
    t.comment(`${kind}: ${found.length - differing.length}/${found.length}`);
    if (wanted !== undefined) for (const outcome of differing) show(outcome);
    const known = readDifferences(kind);
    const ids = new Set(differing.map((outcome) => outcome.case.id));
    if (record) write(kind, known, ids);
    const expected = new Set(Object.values(record ? readDifferences(kind) : known).flat());
    const surprises = differing.filter((outcome) => !expected.has(outcome.case.id));
    t.same(
      surprises.map(({ case: { id }, differences }) => `${id}: ${differences[0]}`),
      [],
      `${kind}: no other case differs`,
    );
    t.same(
      [...expected].filter((id) => !ids.has(id)),
      [],
      `${kind}: every listed case differs (SVC_RECORD=1 removes the others)`,
    );
  }
  t.comment(`all kinds: ${agreed}/${outcomes.length}`);
  const messages = new RecordedDifferences("messages");
  for (const { case: recorded, textDifference } of outcomes) {
    messages.add(recorded.id, textDifference);
    if (wanted !== undefined && textDifference !== undefined) console.log(`  ${recorded.id}: ${textDifference}`);
  }
  t.comment(`messages and causes: ${messages.count} differ`);
  t.same(messages.unlisted(), [], "no other message or list of causes differs");
  if (wanted === undefined) t.same(messages.resolved(), [], "every listed message differs");
});

function show({ case: one, differences }: Outcome): void {
  const body = JSON.stringify(one.body)?.slice(0, 600);
  console.log(`  ${one.id}\n    ${one.method} ${one.path}?${one.query ?? ""} ${body}`);
  for (const difference of differences) console.log(`      ${difference}`);
}
