/** Timing attacks: secrets are compared by one function, or looked up by their digests. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";

const src = fileURLToPath(new URL("../..", import.meta.url));
/** Without the packages with parsers, in which a token is a lexical one. */
const sources = globSync("**/*.ts", { cwd: src })
  .filter((path) => !/(?:^(?:acceptance|testing|bench|cel|schema|api)\/|\.(?:test|bench|fuzz)\.ts$)/.test(path))
  .map((path) => ({ path, text: readFileSync(join(src, path), "utf8") }));

const SECRET = String.raw`[\w.?!#]*(?:[tT]oken|[sS]ecret|[pP]assword|[sS]ignature|[bB]earer|authorization)`;
const OPERAND = String.raw`[\w.?!#]+|"[^"]*"`;
const COMPARISON = new RegExp(
  String.raw`(?:(${SECRET}) [!=]==? (${OPERAND}))|(?:(${OPERAND}) [!=]==? (${SECRET}))(?![\w.(\[])`,
  "g",
);
const PLAIN = /^(?:"[^"]*"|undefined|null|true|false|-?\d+)$/;

/** Compares the tokens of one file with each other while reading it. */
const TOKEN_FILE = "auth/authn/token/token-file.ts";

t.test("secrets are compared by constantTimeEqual() only", async (t) => {
  const found = sources.flatMap(({ path, text }) => {
    return [...text.matchAll(COMPARISON)]
      .filter(([, , right, left]) => !PLAIN.test(right ?? left ?? ""))
      .map(([what]) => `${path}: ${what}`);
  });
  t.same(found, []);
  const callers = sources.filter(({ text }) => text.includes("timingSafeEqual")).map(({ path }) => path);
  t.same(callers, ["std/crypto/constant-time-equal.ts"], "timingSafeEqual is used in one file");
});

t.test("bearer tokens are looked up by their digests only", async (t) => {
  const lookups = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/\.(?:get|has)\((?:\w+\.)*(?:token|token\.text|bearer|authorization)\)/g)].map(
      ([what]) => `${path}: ${what}`,
    ),
  );
  t.same(
    lookups.filter((each) => !each.startsWith(TOKEN_FILE)),
    [],
  );
});

t.test("the pattern finds comparisons of secrets with === and ==", async (t) => {
  for (const bad of ["token === known", "row.token !== sent", "sent == secret", "a.signature === expected.signature"]) {
    t.ok(bad.match(COMPARISON), bad);
  }
});
