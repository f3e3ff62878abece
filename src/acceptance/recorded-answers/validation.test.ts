/**
 * Creates, updates, patches and subresource writes of every kind, answered as a Kubernetes 1.33 server answered them.
 * What differs stands in `testdata/recorded-differences/KIND.json`, ids under the reason why; the lists only shrink.
 *
 *     SVC_KIND=Deployment node src/apiserver/recorded-validation.test.ts           shows what differs
 *     SVC_KIND=Deployment SVC_RECORD=1 node src/apiserver/recorded-validation.test.ts   strikes what no longer does
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";
import { type Outcome, recordedCases, replay } from "./cases.ts";

const folder = fileURLToPath(new URL("../../../testdata/recorded-differences/", import.meta.url));
const UNEXPLAINED = "unexplained";
const wanted = process.env.SVC_KIND;
const record = process.env.SVC_RECORD === "1";

type Differences = Readonly<Record<string, readonly string[]>>;

function listed(kind: string): Differences {
  const path = `${folder}${kind}.json`;
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Differences) : {};
}

/** Known reasons keep their ids, as far as these still differ. */
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

t.test("answers are those of a Kubernetes 1.33 server", async (t) => {
  const cases = recordedCases();
  if (cases === undefined) {
    t.comment("shared/ is not present: 10,000 recorded cases left out");
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
    const known = listed(kind);
    const ids = new Set(differing.map((outcome) => outcome.case.id));
    if (record) write(kind, known, ids);
    const expected = new Set(Object.values(record ? listed(kind) : known).flat());
    const surprises = differing.filter((outcome) => !expected.has(outcome.case.id));
    t.same(
      surprises.map(({ case: { id }, differences }) => `${id}: ${differences[0]}`),
      [],
      `${kind}: nothing else differs`,
    );
    t.same(
      [...expected].filter((id) => !ids.has(id)),
      [],
      `${kind}: nothing is listed that agrees (SVC_RECORD=1 strikes it)`,
    );
  }
  t.comment(`all kinds: ${agreed}/${outcomes.length}`);
});

function show({ case: one, differences }: Outcome): void {
  const body = JSON.stringify(one.body)?.slice(0, 600);
  console.log(`  ${one.id}\n    ${one.method} ${one.path}?${one.query ?? ""} ${body}`);
  for (const difference of differences) console.log(`      ${difference}`);
}
