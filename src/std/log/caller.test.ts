import t from "tap";
import { createLogger } from "./logger.ts";

t.test("a log line's header names the file and line of the call, through every method of a logger", (t) => {
  const lines: string[] = [];
  const sink = { write: (line: string) => lines.push(line), flushSync: () => {} };
  using log = createLogger({ verbosity: 4 }, { stderr: sink });
  const first = new Error().stack?.match(/caller\.test\.ts:(\d+)/)?.[1];
  log.info("one");
  log.child("store").warn("two");
  log.v(4)?.error("three");
  t.same(
    lines.map((line) => /(\S+)\]/.exec(line)?.[1]),
    [1, 2, 3].map((offset) => `caller.test.ts:${Number(first) + offset}`),
  );
  t.end();
});

t.test("a log line in JSON has the caller as a member", (t) => {
  const lines: string[] = [];
  const sink = { write: (line: string) => lines.push(line), flushSync: () => {} };
  using log = createLogger({ format: "json" }, { stderr: sink });
  log.info("one");
  t.match(JSON.parse(lines[0] ?? ""), { caller: /^caller\.test\.ts:\d+$/ });
  t.end();
});
