/**
 * The pods that cost an agent the most, within the limits of the API server: the longest turn of the event loop, and
 * the memory of an agent with a small heap. `SVC_ATTACKS=all` (`make attacks`) starts all and prints a table; otherwise
 * some.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { KilledAgent } from "../../testing/agent/killed-agent.ts";
import { freePort } from "../../testing/std/free-port.ts";
import { until } from "../../testing/std/until.ts";
import { hostilePods } from "./hostile-pods.ts";
import { connectMeter, measuredProgram } from "./process-meter.ts";

const all = process.env.SVC_ATTACKS === "all";
/** `SVC_ATTACK=annotations/hosts`: those whose names contain it. */
const only = process.env.SVC_ATTACK?.split("/");
/** Those that run soon: a thousand containers take minutes. */
const QUICK: readonly string[] = ["24,000 annotations in a volume", "one ConfigMap of 1 MiB in 400 files"];
const MS_MAX = 500;
const MIB_MAX = 150;
/** For what the agent does once the pod runs: its status, and that of its volumes. */
const AFTER_MS = 2_000;
const START_MS_MAX = 300_000;

t.setTimeout(3_600_000);

t.test("no pod stops an agent with a small heap", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "svc-attack-"));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const turns = await freePort();
  await using agent = await KilledAgent.create({
    directory,
    cgroup: `/${basename(directory)}`,
    program: measuredProgram,
    flags: ["--max-pods=110"],
    env: { SVC_TURNS: String(turns) },
  });
  await agent.start();
  const runs = (name: string): boolean => agent.statusOf(name).phase === "Running";
  agent.createPod("first");
  await until("the first pod", () => runs("first"), { timeoutMs: START_MS_MAX });
  const meter = connectMeter(agent.pid ?? 0, turns);
  t.teardown(() => meter.dispose());
  const rows: string[] = [];
  for (const [index, { what, objects = {}, spec, metadata }] of hostilePods().entries()) {
    if (only === undefined ? !all && !QUICK.includes(what) : !only.some((text) => what.includes(text))) continue;
    for (const [path, object] of Object.entries(objects)) agent.api.put(path, object);
    const name = `pod${index}`;
    const [, cost] = await meter.measure(async () => {
      agent.createPod(name, spec, metadata);
      await until(
        () => `${what}; the log:\n${agent.log.slice(-4000)}`,
        () => runs(name) || !agent.isRunning,
        { timeoutMs: START_MS_MAX },
      );
      await sleep(AFTER_MS);
    });
    const [, end] = await meter.measure(async () => {
      agent.deletePod(name);
      await until(
        () => `the end of ${name}; the log:\n${agent.log.slice(-4000)}`,
        () => !agent.exists(name) || !agent.isRunning,
        { timeoutMs: START_MS_MAX },
      );
    });
    const ms = Math.max(cost.ms, end.ms);
    const figures = [cost.ms, end.ms, cost.heapMiB, cost.residentMiB].map(Math.round);
    rows.push(`| ${what} | ${figures.join(" | ")} |`);
    if (only !== undefined) console.error(rows.at(-1));
    t.ok(agent.isRunning, `${what}: the agent runs`);
    t.ok(ms < MS_MAX, `${what}: ${Math.round(ms)} ms`);
    t.ok(cost.heapMiB < MIB_MAX, `${what}: ${Math.round(cost.heapMiB)} MiB`);
  }
  if (!all) return;
  const head =
    "| pod | start: longest turn, ms | end: longest turn, ms | heap, MiB | resident, MiB |\n|---|---|---|---|---|";
  console.error(`${head}\n${rows.join("\n")}`);
});
