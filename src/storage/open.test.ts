import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { silentLogger } from "../std/log/logger.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { openStore } from "./open.ts";

const options = { clock: new FakeClock(), log: silentLogger, compactionIntervalMs: 0 };

t.test("openStore() opens the engine of the URL scheme", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "svc-open-"));
  t.teardown(() => rmSync(directory, { recursive: true }));
  await using memory = await openStore({ ...options, urls: ["memory://"] });
  t.equal(memory.current(), 1);
  await using level = await openStore({ ...options, urls: [`level://${directory}/with%20space`] });
  t.equal(level.current(), 1);
  t.ok(existsSync(join(directory, "with space", "CURRENT")));
});

t.test("openStore() rejects an unknown URL with the supported formats", async (t) => {
  for (const url of ["", "level://", "level://relative", "bolt:///x", "memory"]) {
    await t.rejects(openStore({ ...options, urls: [url] }), {
      message: `Cannot use store "${url}": it must be level:///path/to/directory, memory:// or https://host:port`,
    });
  }
  const urls = ["memory://", "https://192.0.2.1:2379"];
  await t.rejects(openStore({ ...options, urls }), { message: /only http:\/\/ and https:\/\/ servers/ });
});
