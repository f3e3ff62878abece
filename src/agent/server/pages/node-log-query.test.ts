import t from "tap";
import { makeRequest } from "../../../http/request.ts";
import { type NodeLogQueryOptions, parseNodeLogQuery, runProgram, serveNodeLogQuery } from "./node-log-query.ts";

async function read(options: NodeLogQueryOptions, query: string, path = "/logs/") {
  const { status, body } = await serveNodeLogQuery(options, makeRequest({ path, query }));
  const chunks: Uint8Array[] = [];
  for await (const chunk of body instanceof Uint8Array ? [body] : body) chunks.push(chunk);
  return `${status} ${Buffer.concat(chunks)}`;
}

t.test("serveNodeLogQuery() serves the journal of services", async (t) => {
  const calls: string[] = [];
  async function* run(program: string, args: readonly string[]) {
    calls.push([program, ...args].join(" "));
    if (args.includes("_SYSTEMD_UNIT")) yield Buffer.from("b.service\nempty.service\na.service\n");
    else if (args.includes("--unit=empty")) {
      yield Buffer.from("-- No entries --\n");
      throw new Error("journalctl ended with status 1");
    } else yield Buffer.from(`journal of ${args.at(-1)}\n`);
  }
  const options = { root: t.testdir({ "empty.log": "of a file\n", "c.log": "of c\n" }), run };
  t.equal(
    await read(options, "query=a&query=b&tailLines=5&pattern=x.y&boot=-1&sinceTime=1970-01-01T00:01:00Z"),
    "200 journal of --unit=a\njournal of --unit=b\n",
  );
  const all = "journalctl --utc --no-pager --output=short-precise --since=@60 --lines=5 --grep=x.y --boot=-1 --unit";
  t.same(calls, ["journalctl --field _SYSTEMD_UNIT", `${all}=a`, `${all}=b`]);
  t.equal(await read(options, "query=empty&pattern=x"), "200 -- No entries --\n", "no line of the unit matches");
  t.equal(await read(options, "query=c&query=a"), "200 of c\njournal of --unit=a\n", "c has no unit");
});

t.test("serveNodeLogQuery() serves a service's log file when the journal does not have its unit", async (t) => {
  async function* run(): AsyncGenerator<Uint8Array> {
    yield* [];
    throw new Error("no journalctl");
  }
  const options = { root: t.testdir({ "a.log": "of a\n", b: { "b.log": "of b\n" }, sub: { "c.log": "of c\n" } }), run };
  t.equal(await read(options, "query=a"), "200 of a\n");
  t.equal(await read(options, "query=b"), "200 of b\n");
  t.equal(await read(options, "query=absent"), "200 log not found for absent\n");
  t.equal(await read(options, "query=/sub/c.log"), "200 of c\n");
  t.equal(await read(options, "query=../../etc/passwd"), "404 404 page not found\n");
  t.match(await read(options, ""), /^200 <!doctype html>/);
  t.equal(await read(options, "query=a", "/logs/sub/"), "406 path not allowed in query mode\n");
});

t.test("parseNodeLogQuery() refuses what is no service, time or number", async (t) => {
  const cases = [
    "query=%20",
    "query=a&query=b/c",
    "query=a/b&query=c/d",
    "query=a&query=b&query=c&query=d&query=e",
    "query=--flush",
    "query=a%20b",
    "query=a&sinceTime=now",
    "query=a&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z",
    "query=a&tailLines=-1",
    "query=a&tailLines=100001",
    "query=a&boot=1",
    `query=a&pattern=${"x".repeat(1001)}`,
  ];
  for (const query of cases) t.match(parseNodeLogQuery(query), { problem: /: Invalid value: must/ }, query);
});

t.test("runProgram() streams the output, and ends with the request", async (t) => {
  const signal = new AbortController();
  let text = "";
  for await (const chunk of runProgram("echo", ["one"], signal.signal)) text += Buffer.from(chunk).toString();
  t.equal(text, "one\n");
  const failing = async (program: string) => {
    for await (const _chunk of runProgram(program, [], signal.signal)) t.fail("no output");
  };
  await t.rejects(failing("false"), /false ended with status 1/);
  await t.rejects(failing("svc-no-such-program"), /ENOENT/);
  const endless = async () => {
    for await (const _chunk of runProgram("yes", [], signal.signal)) signal.abort();
  };
  await t.rejects(endless());
});
