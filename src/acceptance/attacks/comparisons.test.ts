/** What time tells: secrets are compared in one place, or looked up by digests of them, and nowhere else. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";

const src = fileURLToPath(new URL("../..", import.meta.url));
/** Without rooms that know languages, in which a token is a word. */
const sources = globSync("**/*.ts", { cwd: src })
  .filter((path) => !/(?:^(?:acceptance|testing|bench|cel|schema|api)\/|\.(?:test|bench|fuzz)\.ts$)/.test(path))
  .map((path) => ({ path, text: readFileSync(join(src, path), "utf8") }));

const SECRET = String.raw`[\w.?!#]*(?:[tT]oken|[sS]ecret|[pP]assword|[sS]ignature|[bB]earer|authorization)`;
const OPERAND = String.raw`[\w.?!#]+|"[^"]*"`;
const COMPARED = new RegExp(
  String.raw`(?:(${SECRET}) [!=]==? (${OPERAND}))|(?:(${OPERAND}) [!=]==? (${SECRET}))(?![\w.(\[])`,
  "g",
);
const PLAIN = /^(?:"[^"]*"|undefined|null|true|false|-?\d+)$/;

/** Compares tokens of one file with each other, when it is read. */
const HARMLESS = "auth/authn/token-file.ts";

t.test("secrets are compared by sameSecret() alone", async (t) => {
  const found = sources.flatMap(({ path, text }) => {
    return [...text.matchAll(COMPARED)]
      .filter(([, , right, left]) => !PLAIN.test(right ?? left ?? ""))
      .map(([what]) => `${path}: ${what}`);
  });
  t.same(found, []);
  const timed = sources.filter(({ text }) => text.includes("timingSafeEqual")).map(({ path }) => path);
  t.same(timed, ["std/same-secret.ts"], "and nobody takes the time by hand");
});

t.test("bearer tokens are looked up by their digests", async (t) => {
  const looked = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/\.(?:get|has)\((?:\w+\.)*(?:token|token\.text|bearer|authorization)\)/g)].map(
      ([what]) => `${path}: ${what}`,
    ),
  );
  t.same(
    looked.filter((each) => !each.startsWith(HARMLESS) && !each.startsWith("agent/fake-api.ts")),
    [],
  );
});

t.test("the comparison of secrets would be noticed where it is written as others are", async (t) => {
  for (const bad of ["token === known", "row.token !== sent", "sent == secret", "a.signature === expected.signature"]) {
    t.ok(bad.match(COMPARED), bad);
  }
});
