/**
 * Repeats recorded creates with one text or map key replaced by `constructor`, which every object of JavaScript
 * inherits, and compares the responses with those to another word that no rule has. A sample of a tenth, which changes
 * every day; SVC_INHERITED_SAMPLE=1 takes all of them in two seconds.
 */
import t from "tap";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { type RecordedCase, recordedCases } from "./cases.ts";

const INHERITED = "constructor";
const OTHER = "xonstructor";
/** One of so many variants. */
const SAMPLE = Number(process.env.SVC_INHERITED_SAMPLE ?? 10);
const DAY_MS = 86_400_000;

type Variant = readonly [path: string, value: unknown];

/** The value with one of its texts replaced, or with a key added to one of its maps of texts. */
function* variantsOf(value: unknown, word: string): Iterable<Variant> {
  if (typeof value === "string") return yield ["", word];
  if (typeof value !== "object" || value === null) return;
  const members: readonly (readonly [string, unknown])[] = Object.entries(value);
  for (const [name, member] of members) {
    for (const [path, next] of variantsOf(member, word)) {
      const copy = Array.isArray(value) ? value.with(Number(name), next) : { ...value, [name]: next };
      yield [`.${name}${path}`, copy];
    }
  }
  const [first] = members;
  if (!Array.isArray(value) && first !== undefined && members.every(([, member]) => typeof member === "string")) {
    yield [`.${word}`, { ...value, [word]: first[1] }];
  }
}

/** For each kind and path, the accepted create with the longest body. */
function longestCreates(cases: readonly RecordedCase[]): readonly RecordedCase[] {
  const longest = new Map<string, RecordedCase>();
  const sizeOf = (one: RecordedCase | undefined): number => JSON.stringify(one?.body ?? "").length;
  for (const one of cases) {
    const isCreate = one.method === "POST" && one.expect.code === 201 && typeof one.body === "object";
    if (isCreate && sizeOf(one) > sizeOf(longest.get(one.path))) longest.set(one.path, one);
  }
  return [...longest.values()];
}

t.test("names that objects of JavaScript inherit get the responses of other words", async (t) => {
  const cases = recordedCases();
  if (cases === undefined) {
    t.comment("Skipped: shared/ is not present");
    return;
  }
  await using server = await startTestServer({ authorizationModes: ["Node", "RBAC"] });
  const responseTo = async (path: string, body: unknown): Promise<string> => {
    const { status, text } = await server.send(`POST ${path}?dryRun=All`, { body: JSON.stringify(body) });
    // The order of the members of maps, and so of their errors, depends on the word.
    return `${status} ${status < 400 ? "" : [...text.replaceAll(OTHER, INHERITED)].sort().join("")}`;
  };
  const differing: string[] = [];
  let position = Math.floor(Date.now() / DAY_MS);
  for (const { kind, path, body } of longestCreates(cases)) {
    const others = [...variantsOf(body, OTHER)];
    for (const [i, [at, variant]] of [...variantsOf(body, INHERITED)].entries()) {
      if (position++ % SAMPLE !== 0) continue;
      const [response, expected] = [await responseTo(path, variant), await responseTo(path, others[i]?.[1])];
      if (response !== expected) differing.push(`${kind} ${at}: ${response}, not ${expected}`);
    }
  }
  t.same(differing, []);
});
