import { gunzipSync } from "node:zlib";
import t from "tap";
import { makeRequest } from "../../../http/request.ts";
import { type NodeLogQueryOptions, runProgram, serveNodeLogQuery } from "./node-log-query.ts";

async function read(options: NodeLogQueryOptions, query: string, path = "/logs/", headers = {}) {
  const { status, body } = await serveNodeLogQuery(options, makeRequest({ path, query, headers }));
  const chunks: Uint8Array[] = [];
  for await (const chunk of body instanceof Uint8Array ? [body] : body) chunks.push(chunk);
  const content = Buffer.concat(chunks);
  return `${status} ${"accept-encoding" in headers ? gunzipSync(content) : content}`;
}

async function* noJournal(): AsyncGenerator<Uint8Array> {
  yield* [];
  throw new Error("no journalctl");
}

t.test("serveNodeLogQuery() serves the journal of services", async (t) => {
  const calls: string[] = [];
  async function* run(program: string, args: readonly string[]) {
    calls.push([program, ...args].join(" "));
    if (args.includes("_SYSTEMD_UNIT")) yield Buffer.from("b.service\nempty.service\na.service\n");
    else if (args.includes("--unit=empty")) {
      yield Buffer.from("-- No entries --\n");
      throw new Error("journalctl ended with status 1");
    } else yield Buffer.from("journal\n");
  }
  const options = { root: t.testdir({ "empty.log": "of a file\n", "c.log": "of c\n" }), run };
  t.equal(
    await read(options, "query=a&query=b&tailLines=5&pattern=x.y&boot=-1&sinceTime=1970-01-01T00:01:00Z"),
    "200 journal\n",
    "one program sorts the lines of all services by time",
  );
  const words = "--since=@60 --lines=5 --unit=a --unit=b --grep=x.y --boot=-1";
  const program = "journalctl --utc --no-pager --output=short-precise";
  t.same(calls.splice(0), ["journalctl --field _SYSTEMD_UNIT", `${program} ${words}`]);
  await read(options, "query=a&untilTime=1970-01-01T01:01:00%2B01:00");
  t.equal(calls.at(-1), `${program} --until=@60 --unit=a`, "without a begin, and in another zone");
  t.equal(await read(options, "query=empty&pattern=x"), "200 -- No entries --\n", "no line of the unit matches");
  t.equal(await read(options, "query=c&query=a"), "200 journal\nof c\n", "c has no unit");
  t.match(await read(options, "query=c&query=a&boot=0"), /^200 journal\n\noptions present and query .* for \[c\]\n/);
  t.equal(await read(options, "query=a", "/logs/", { "accept-encoding": "gzip" }), "200 journal\n");
});

t.test("serveNodeLogQuery() serves a service's log file when the journal does not have its unit", async (t) => {
  const files = { "a.log": "of a\n", b: { "b.log": "of b\n" }, d: "of d\n", "d.log": "another\n" };
  const root = t.testdir({ ...files, sub: { "c.log": "of c\n" } });
  const options = { root, run: noJournal };
  t.equal(await read(options, "query=a"), "200 of a\n");
  t.equal(await read(options, "query=b"), "200 of b\n");
  t.equal(await read(options, "query=d"), "200 of d\n", "the name itself comes first");
  t.equal(await read(options, "query=absent"), "200 \nlog not found for absent\n");
  t.equal(
    await read(options, "query=a&query=b&tailLines=1"),
    "200 \noptions present and query resolved to log files for [a b]\ntry without specifying options\n",
  );
  t.equal(await read(options, "query=/sub/c.log"), "200 of c\n");
  t.equal(await read(options, "query=sub%5Cc.log"), "200 of c\n", "with the separator of Windows clients");
  t.match(await read(options, ""), /^200 <!doctype html>/);
});

t.test("serveNodeLogQuery() refuses queries with Kubernetes' statuses and texts", async (t) => {
  const root = t.testdir({ "a.log": "of a\n" });
  const options = { root, run: noJournal };
  const cases = [
    ["query=%20", '400 query: Invalid value: []string{" "}: query cannot be empty'],
    ["query=", '400 query: Invalid value: []string{""}: query cannot be empty'],
    ["query=a&sinceTime=now", '400 sinceTime: Invalid value: "now": invalid time format'],
    [
      "query=a&untilTime=2026-13-01T00:00:00Z",
      '400 untilTime: Invalid value: "2026-13-01T00:00:00Z": invalid time format',
    ],
    ["query=a&tailLines=x", '400 tailLines: Invalid value: "x": strconv.Atoi: parsing "x": invalid syntax'],
    [
      "query=a&boot=99999999999999999999",
      /^400 boot: .*strconv.Atoi: parsing "99999999999999999999": value out of range/,
    ],
    ["query=a&boot=x&tailLines=y", /^400 \[boot: Invalid .* syntax, tailLines: Invalid .* syntax\]\n$/],
    ["tailLines=5", "406 query: Required value: cannot be empty with options"],
    ["query=a&query=b/c", '406 query: Invalid value: "[b/c], [a]": cannot specify a file and service'],
    ["query=a/b&query=c/d", '406 query: Invalid value: []string{"a/b", "c/d"}: cannot specify more than one file'],
    ["query=/a.log&boot=0", '406 query: Invalid value: []string{"/a.log"}: cannot specify file with options'],
    ["query=/b.log", `406 query: Invalid value: []string{"/b.log"}: stat ${root}/b.log: no such file or directory`],
    ["query=../../a.log/x", /^406 query: Invalid value: .* no such file or directory\n$/],
    ["query=../../etc/passwd", /^406 query: Invalid value: .*: stat \S+\/etc\/passwd: no such file or directory\n$/],
    ["query=a&query=b&query=c&query=d&query=e", "406 query: Too many: 5: must have at most 4 items"],
    ["query=a.b", '406 query: Invalid value: "a.b": input contains unsupported characters'],
    ["query=a%20b", '406 query: Invalid value: "a b": input contains unsupported characters'],
    [`query=${"x".repeat(257)}`, /: length must be less than 100\n$/],
    [
      "query=a&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z",
      "406 untilTime: Invalid value: 2026-01-01 00:00:00 +0000 UTC: must be after `sinceTime`",
    ],
    ["query=a&tailLines=-1", "406 tailLines: Invalid value: -1: must be between 0 and 100000, inclusive"],
    ["query=a&tailLines=100001", "406 tailLines: Invalid value: 100001: must be between 0 and 100000, inclusive"],
    ["query=a&boot=1", "406 boot: Invalid value: 1: must be less than 1"],
    ["query=a&pattern=(", '406 pattern: Invalid value: "(": error parsing regexp: missing closing ): `(`'],
  ] as const;
  for (const [query, expected] of cases) {
    const response = await read(options, query);
    if (typeof expected === "string") t.equal(response, `${expected}\n`, query);
    else t.match(response, expected, query);
  }
  t.equal(await read(options, "query=a", "/logs/sub/"), "406 path not allowed in query mode\n");
});

t.test("runProgram() streams both outputs, and ends with the request", async (t) => {
  const signal = new AbortController();
  let text = "";
  const words = ["-c", "echo one; echo two >&2"];
  for await (const chunk of runProgram("sh", words, signal.signal)) text += Buffer.from(chunk).toString();
  t.equal(text, "one\ntwo\n");
  const drain = async (program: string) => {
    for await (const _chunk of runProgram(program, [], signal.signal)) void _chunk;
  };
  await t.rejects(drain("false"), /false ended with status 1/);
  await t.rejects(drain("svc-no-such-program"), /ended with status 127/);
  const endless = async () => {
    for await (const _chunk of runProgram("yes", [], signal.signal)) signal.abort();
  };
  await t.rejects(endless());
});
