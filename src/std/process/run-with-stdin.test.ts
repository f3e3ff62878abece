import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { systemClock } from "../time/clock.ts";
import { runWithStdin } from "./run-with-stdin.ts";

const limits = { timeoutMs: 1000, bytesMax: 100 };
const never = new AbortController().signal;
const shell = (script: string) => ({ command: "/bin/sh", args: ["-c", script], env: { NAME: "jo" } });

t.test("runWithStdin() writes the input to stdin and resolves with stdout", async (t) => {
  t.equal(
    await runWithStdin(shell('read x; echo "$x $NAME"; echo more >&2'), "hello\n", limits, systemClock, never),
    "hello jo\n",
  );
  t.equal(await runWithStdin(shell("echo unread"), "x".repeat(1_000_000), limits, systemClock, never), "unread\n");
});

t.test("runWithStdin() rejects with the exit status and stderr, or with the limit that was exceeded", async (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["echo secret; echo why >&2; exit 3", /^exit status 3: why$/],
    ["kill -TERM $$", /^signal: SIGTERM$/],
    ["yes", /^stdout is longer than 100 bytes$/],
  ];
  for (const [script, message] of cases) {
    await t.rejects(runWithStdin(shell(script), "", limits, systemClock, never), { message }, script);
  }
  await t.rejects(runWithStdin({ command: "/nowhere", args: [], env: {} }, "", limits, systemClock, never), /ENOENT/);
  const clock = new FakeClock();
  const late = runWithStdin(shell("sleep 60"), "", limits, clock, never);
  const rejected = t.rejects(late, { message: "no answer within 1 seconds" });
  await clock.advance(1000);
  await rejected;
});
