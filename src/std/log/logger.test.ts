import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { createLogger, type LogOptions, type LogSink } from "./logger.ts";

process.env.TZ = "UTC";
const START = Date.UTC(2026, 9, 25, 0, 15, 15, 525);

class Lines implements LogSink {
  text = "";
  flushes = 0;
  write(line: string): void {
    // The line of the call is caller.test.ts's subject.
    this.text += line.replace(/\blogger\.test\.ts:\d+/, "logger.test.ts:1");
  }
  flushSync(): void {
    this.flushes++;
  }
}

function setUp(options: Partial<LogOptions> = {}) {
  const stderr = new Lines();
  const stdout = new Lines();
  const clock = new FakeClock(START);
  const log = createLogger(options, { clock, pid: 4711, stderr, stdout });
  return { log, stderr, stdout, clock };
}

t.test("createLogger() writes klog's header, quoted message and fields", async (t) => {
  const { log, stderr, stdout } = setUp();
  log.child("pod-worker").info("Started container", { pod: "default/web", attempt: 2, ready: false, none: undefined });
  log.warn("Slow", { tookMs: 12.5, nothing: null, big: 12n });
  t.equal(
    stderr.text,
    'I1025 00:15:15.525000    4711 logger.test.ts:1] "Started container" pod="default/web" attempt=2 ready=false\n' +
      'W1025 00:15:15.525000    4711 logger.test.ts:1] "Slow" tookMs=12.5 nothing=null big=12\n',
  );
  t.equal(stdout.text, "");
});

t.test("createLogger() prints errors with their causes, and stacks from verbosity 6", async (t) => {
  const error = new Error("Cannot read config", { cause: new Error("no such file") });
  const quiet = setUp();
  quiet.log.error("Stopping", error, { path: "/etc/x" });
  t.equal(
    quiet.stderr.text,
    'E1025 00:15:15.525000    4711 logger.test.ts:1] "Stopping" err="Cannot read config: no such file" path="/etc/x"\n',
  );
  const loud = setUp({ verbosity: 6 });
  loud.log.error("Stopping", error);
  t.match(loud.stderr.text, / stack="Error: Cannot read config\\n {4}at /);
  t.equal(loud.stderr.text.split("\n").length, 2, "one line");
  const twice = setUp();
  twice.log.error("Stopping", new Error("Cannot read: no such file", { cause: new Error("no such file") }));
  t.match(twice.stderr.text, /err="Cannot read: no such file"\n/);
  const odd = setUp();
  odd.log.error("a", "text");
  odd.log.error("b", new AggregateError([new Error("one"), new Error("two")], ""));
  odd.log.error("c", { code: 5 });
  odd.log.error("d");
  t.match(odd.stderr.text, /"a" err="text"\n.*"b" err="one; two"\n.*"c" err={"code":5}\n.*"d"\n$/);
});

t.test("createLogger() escapes line breaks and terminal control characters in values", async (t) => {
  const evil = 'x\nI1025 00:15:15.525000 1 svc.ts:1] "Forged"\u001b[2J\u009b1m\u2028\u202e\u007f"\\';
  for (const format of ["text", "json"] as const) {
    const { log, stderr } = setUp({ format });
    log.info(evil, { value: evil, list: [evil], map: { [evil]: 1 }, [evil]: 1, error: new Error(evil) });
    t.equal(stderr.text.indexOf("\n"), stderr.text.length - 1, "one line");
    t.notOk(
      [...stderr.text.slice(0, -1)].some((character) => character < " "),
      "no control characters",
    );
  }
  const { log, stderr } = setUp();
  log.info(evil, { value: evil, list: [evil] });
  t.notMatch(stderr.text, /[\u007f-\u009f\u2028\u202e]/);
});

t.test("createLogger() prints objects as JSON, circular ones too, and truncates long values", async (t) => {
  const circular: Record<string, unknown> = { a: 1 };
  circular.self = circular;
  const { log, stderr } = setUp();
  log.info("Synced", { pod: { name: "web", uid: 3n }, list: [1, "two"], circular, long: "x".repeat(5000) });
  t.match(stderr.text, 'pod={"name":"web","uid":"3"} list=[1,"two"] circular="<ref *1> { a: 1, self: [Circular *1] }"');
  t.match(stderr.text, /long="x{4096}… \(904 more characters\)"\n$/);
});

t.test("createLogger() writes Kubernetes' JSON format", async (t) => {
  const { log, stderr } = setUp({ format: "json", verbosity: 4 });
  log
    .child("pod-worker", { node: "n1" })
    .v(4)
    ?.info("Pod status updated", { pod: { name: "web" }, msg: "mine" });
  log.error("Failed", new Error("boom"));
  log.warn("Slow");
  const lines = stderr.text.trimEnd().split("\n");
  t.equal(
    lines[0],
    `{"ts":${START}.000,"logger":"pod-worker","caller":"logger.test.ts:1","v":4,"node":"n1","pod":{"name":"web"},"msg_":"mine",` +
      '"msg":"Pod status updated"}',
  );
  const common = { ts: START, logger: "svc", caller: "logger.test.ts:1" };
  t.same(JSON.parse(lines[1]!), { ...common, severity: "error", err: "boom", msg: "Failed" });
  t.same(JSON.parse(lines[2]!), { ...common, severity: "warning", v: 0, msg: "Slow" });
});

t.test("text() writes several lines as they are, without control characters", async (t) => {
  const { log, stderr } = setUp();
  log.child("trace").text('Trace[1]: "List" url:/a\nTrace[1]: \u001b[2J END');
  t.equal(
    stderr.text,
    'I1025 00:15:15.525000    4711 logger.test.ts:1] Trace[1]: "List" url:/a\nTrace[1]: \\u001b[2J END\n',
  );
  const json = setUp({ format: "json" });
  json.log.text("a\nb");
  t.match(JSON.parse(json.stderr.text), { msg: "a\nb" });
});

t.test("v() follows -v and --vmodule, while running too", async (t) => {
  const { log } = setUp({
    verbosity: 1,
    vmodule: [
      { pattern: "pod-*", level: 5 },
      { pattern: "c[ah]che", level: 0 },
    ],
  });
  const on = (module: string, level: number): boolean => log.child(module).v(level) !== undefined;
  t.same([on("server", 1), on("server", 2)], [true, false]);
  t.same([on("pod-worker", 5), on("pod-worker", 6), on("cache", 1), on("cache", 0)], [true, false, false, true]);
  log.setVerbosity(3);
  t.same([on("server", 3), on("pod-worker", 6), on("cache", 1)], [true, false, false]);
});

t.test("createLogger() with splitStream sends errors to stderr and the rest to stdout, flushed in time", async (t) => {
  const { log, stderr, stdout, clock } = setUp({ splitStream: true, infoBufferSize: 1024, flushFrequencyMs: 5000 });
  log.info("one");
  log.warn("two");
  log.error("three");
  t.match(stdout.text, /"one"\n.*"two"\n$/);
  t.match(stderr.text, /"three"\n$/);
  t.equal(stdout.flushes, 0);
  await clock.advance(5000);
  t.equal(stdout.flushes, 1);
  t.equal(clock.pending, 0, "no timer without lines");
  log[Symbol.dispose]();
  t.equal(stdout.flushes, 2);
});

t.test("createLogger() writes buffered lines when the process ends", async (t) => {
  const script = `
    import { createLogger } from ${JSON.stringify(new URL("./logger.ts", import.meta.url).href)};
    const log = createLogger({ splitStream: true, infoBufferSize: 100000 });
    log.info("buffered");
    log.error("direct");
    process.exit(0);`;
  const stdout = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  t.match(stdout, /^I.*"buffered"\n$/);
});

t.test("createLogger() does not block on a reader that does not read", async (t) => {
  const script = `
    import { createLogger } from ${JSON.stringify(new URL("./logger.ts", import.meta.url).href)};
    process.stderr;
    const log = createLogger();
    for (let i = 0; i < 2000; i++) log.info("x".repeat(1000));
    process.stdout.write("not stopped");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "pipe"] });
  child.stderr.pause();
  const [text] = await once(child.stdout, "data");
  t.equal(String(text), "not stopped");
  child.kill("SIGKILL");
});

t.test("without contextual logging lines have only their own fields", async (t) => {
  const { log, stderr } = setUp({ format: "json", isContextual: false });
  log.child("pod-worker", { node: "n1" }).info("Started container", { pod: "web" });
  t.match(JSON.parse(stderr.text), { logger: "svc", msg: "Started container", pod: "web" });
  t.notMatch(stderr.text, /n1|pod-worker/);
});
