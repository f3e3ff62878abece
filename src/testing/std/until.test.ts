import t from "tap";
import { until } from "./until.ts";

t.test("until() resolves with the first result that is neither undefined nor false", async (t) => {
  const results = [undefined, false, "ready", "late"] as const;
  let calls = 0;
  const result = await until("a result", async () => results[calls++]);
  t.equal(result, "ready");
  t.equal(calls, 3);
});

t.test("until() calls `wait` between two checks", async (t) => {
  let waits = 0;
  await until("three waits", () => waits === 3, { wait: async () => waits++ });
  t.equal(waits, 3);
});

t.test("until() rejects after the timeout with the condition in words", async (t) => {
  const log = ["started"];
  await t.rejects(
    until("the port is open", () => false, { timeoutMs: 5 }),
    { message: "Waited 5 ms in vain for: the port is open" },
  );
  await t.rejects(
    until(
      () => `the port is open; log: ${log}`,
      () => undefined,
      { timeoutMs: 5 },
    ),
    { message: /log: started$/ },
  );
});
