import t from "tap";
import { FlagError, flag, section } from "./flag.ts";
import { parseCommandLine, parseFlags, requestsHelp } from "./parse.ts";
import { duration } from "./types/duration.ts";
import { strings } from "./types/list.ts";
import { pairs } from "./types/map.ts";
import { int32, level } from "./types/number.ts";
import { bool, text } from "./types/text.ts";

const table = section("All", {
  port: flag(int32({ min: 1, max: 65_535 }), 80, "Port."),
  "max-wait": flag(duration(), 1000, "Wait."),
  fast: flag(bool, true, "Fast."),
  name: flag(text, "", "Name."),
  zones: flag(strings(), ["a"], "Zones."),
  labels: flag(pairs(), {}, "Labels."),
  v: flag(level, 0, "Verbosity.", { short: "v" }),
  help: flag(bool, false, "Help.", { short: "h" }),
  old: flag(text, "", "Old.", { deprecated: "use --name instead." }),
  later: flag(int32(), 3, "Later.", { inert: "this build never waits" }),
  cert: flag(text, "", "Certificate.", { requires: ["key"] }),
  key: flag(text, "", "Key."),
  mode: flag(text, "a", "Mode.", { requires: ["key"] }),
  "fast-mode": flag(bool, false, "Fast mode.", { requires: ["fast"] }),
  file: flag(text, "", "File.", { excludes: ["zones", "max-*"] }),
});

const parse = (...argv: string[]) => parseFlags(table, argv, { warn: () => {} });

function problemsOf(...argv: string[]): readonly string[] {
  try {
    parse(...argv);
  } catch (error) {
    if (error instanceof FlagError) return error.problems;
    throw error;
  }
  return [];
}

t.test("parseFlags() gives each flag its type", async (t) => {
  const flags = parse("--port=8080");
  const port: number = flags.port;
  const zones: readonly string[] = flags.zones;
  t.equal(port, 8080);
  t.same(zones, ["a"]);
  t.equal(flags["max-wait"], 1000);
});

t.test("parseFlags() reads values after = and after a space, negative ones too", async (t) => {
  t.equal(parse("--port", "8080").port, 8080);
  t.equal(parse("--max-wait", "-1m30s")["max-wait"], -90_000);
  t.equal(parse("--name=a=b").name, "a=b");
  t.equal(parse("--name=").name, "");
  t.equal(parse("--name", "").name, "");
  t.equal(parse("--name=two words").name, "two words");
  t.equal(parse("--name=007").name, "007");
});

t.test("parseFlags() reads booleans without a value, and does not take the next word", async (t) => {
  t.equal(parse("--fast=false").fast, false);
  t.equal(parse("--fast").fast, true);
  t.equal(parse("--fast=T").fast, true);
  t.same(problemsOf("--fast", "false"), ['unexpected argument "false": flags start with --']);
  t.same(problemsOf("--fast=maybe"), ['--fast="maybe": must be true or false']);
});

t.test("parseFlags() takes short names joined, apart and with =", async (t) => {
  for (const argv of [["-v4"], ["-v", "4"], ["-v=4"], ["--v=4"], ["--v", "4"]])
    t.equal(parse(...argv).v, 4, argv.join(" "));
});

t.test("parseFlags() refuses a long name behind one dash, in one sentence", async (t) => {
  t.same(problemsOf("-port=1"), ["-port: a flag's name stands behind two dashes: --port"]);
  t.same(problemsOf("-max_wait", "1s"), ["-max-wait: a flag's name stands behind two dashes: --max-wait"]);
  t.equal(parse("-v4").v, 4, "a short name is not a long name");
});

t.test("parseFlags() reads underscores in names as dashes", async (t) => {
  t.equal(parse("--max_wait=2s")["max-wait"], 2000);
  t.equal(parse("--max_wait", "2s")["max-wait"], 2000);
});

t.test("parseFlags() adds up lists and maps, first replacing the default; scalars keep the last", async (t) => {
  t.same(parse("--zones=b,c", "--zones", "d").zones, ["b", "c", "d"]);
  t.same(parse('--zones="b,c",d').zones, ["b,c", "d"]);
  t.same(parse("--labels=a=1,b=2", "--labels=a=3").labels, { a: "3", b: "2" });
  t.equal(parse("--port=1", "--port=2").port, 2);
});

t.test("parseFlags() names flag, value and what is allowed, for all problems at once", async (t) => {
  t.same(problemsOf("--port=http", "--max-wait=soon", "--prot=3", "stray"), [
    "unknown flag --prot: did you mean --port?",
    'unexpected argument "stray": flags start with --',
    '--port="http": must be a whole number between 1 and 65535',
    '--max-wait="soon": must be a duration such as 30s or 2m0s',
  ]);
  t.same(problemsOf("--port=0"), ['--port="0": must be a whole number between 1 and 65535']);
  t.same(problemsOf("--port"), ["--port: a value is missing, it must be a whole number between 1 and 65535"]);
});

t.test("parseFlags() bounds the number of problems and the length of values in a message", async (t) => {
  const many = Array.from({ length: 50 }, (_, index) => `word${index}`);
  t.throws(() => parse(...many), { message: /and 30 more$/ });
  t.ok(problemsOf(`--port=${"9".repeat(10_000)}`)[0]!.length < 400);
});

t.test("parseFlags() refuses names of members of Object", async (t) => {
  for (const name of ["__proto__", "constructor", "toString", "a.b"]) {
    t.match(problemsOf(`--${name}=1`)[0], /^unknown flag/, name);
  }
  t.equal(({} as Record<string, unknown>).polluted, undefined);
});

t.test("parseFlags() refuses flags that exclude each other or lack one that they need", async (t) => {
  t.same(problemsOf("--file=x", "--zones=b"), ["--file and --zones exclude each other: give one of them"]);
  t.same(problemsOf("--file=x", "--max-wait=1s"), ["--file and --max-wait exclude each other: give one of them"]);
  t.same(problemsOf("--cert=x"), ["--cert needs --key as well"]);
  t.same(problemsOf("--cert=x", "--key=y"), []);
  t.same(problemsOf("--mode=a"), ["--mode needs --key as well"], "at its default");
  t.same(problemsOf("--cert="), ["--cert needs --key as well"], "at an empty default");
  t.same(problemsOf("--mode=a", "--key="), ["--mode needs --key as well"], "with the required flag empty");
  t.same(problemsOf("--cert=", "--key="), [], "all empty");
  t.same(problemsOf("--fast-mode", "--fast=false"), ["--fast-mode needs --fast as well"], "with the required flag off");
  t.same(problemsOf("--fast-mode=false"), [], "a switch that is off");
});

t.test(
  "parseFlags() accepts a flag without effect at its default, in any notation, and refuses it otherwise",
  async (t) => {
    t.equal(parse("--later=03").later, 3);
    t.same(problemsOf("--later=4"), [
      '--later="4": the flag has no effect because this build never waits; only its default "3" is accepted',
    ]);
  },
);

t.test("parseFlags() warns of deprecated flags", async (t) => {
  const lines: string[] = [];
  parseFlags(table, ["--old=x"], { warn: (line) => lines.push(line) });
  t.same(lines, ["Flag --old has been deprecated, use --name instead."]);
});

t.test("parseCommandLine() returns the names of the flags on the command line", async (t) => {
  t.same([...parseCommandLine(table, ["--port=80", "-v1"]).given].sort(), ["port", "v"]);
});

t.test("asksForHelp() sees help in front of --, whatever else is there", async (t) => {
  t.ok(requestsHelp(["--nonsense", "-h"]));
  t.notOk(requestsHelp(["--", "--help"]));
});
