/** The memory of a server: objects that are larger than it together, and requests that fill its heap. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";

t.setTimeout(180_000);

const MAPS = "/api/v1/namespaces/default/configmaps";

function placeOf(t: Test) {
  const home = mkdtempSync(join(tmpdir(), "svc-heap-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  return { home, store: join(home, "store") };
}

/** Calls `work` for 0…count-1, four at a time. */
async function inParallel(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
}

/** The largest resident memory while `work` runs, in MiB. */
async function peakMemory(server: ServerProcess, work: Promise<unknown>): Promise<number> {
  let peak = 0;
  let over = false;
  const end = work.finally(() => {
    over = true;
  });
  while (!over) {
    peak = Math.max(peak, server.residentMemory());
    await Promise.race([end, sleep(100)]);
  }
  await end;
  return Math.max(peak, server.residentMemory());
}

t.test("memory for large objects is bounded by the budget of caches, not by the store", async (t) => {
  const place = placeOf(t);
  // The budget is a quarter of it.
  const nodeFlags = ["--max-old-space-size=128", "--expose-gc"];
  const objects = 120;
  const text = "x".repeat(1_000_000);
  const bytes = objects * text.length;
  const boundMiB = (2 * bytes) / 2 ** 20;
  const figures: Record<string, number> = {};
  const lists = (server: ServerProcess, count: number, accept = "application/json"): Promise<unknown> =>
    Promise.all(
      Array.from({ length: count }, async () => {
        const { status, json } = await server.send("GET", MAPS, undefined, { accept, ignoreBody: true });
        t.ok(status === 200 && json > bytes, `${status}, ${json} bytes`);
      }),
    );
  {
    await using server = await startServerProcess({ ...place, nodeFlags });
    figures.base = server.residentMemory();
    await inParallel(objects, async (index) => {
      const { status } = await server.send("POST", MAPS, { metadata: { name: `m-${index}` }, data: { text } });
      if (status !== 201) throw new Error(`${status}`);
    });
    figures.written = server.residentMemory();
    figures.fiveLists = await peakMemory(server, lists(server, 5));
    figures.protobuf = await peakMemory(server, lists(server, 1, "application/vnd.kubernetes.protobuf"));
  }
  await using server = await startServerProcess({ ...place, nodeFlags });
  await server.send("GET", `${MAPS}?limit=1`);
  figures.restarted = server.residentMemory();
  figures.listed = await peakMemory(server, lists(server, 2));
  const { base = 0, ...used } = figures;
  for (const [what, resident] of Object.entries(used)) {
    // Five lists of all that are in memory as a whole take five times as much and more.
    t.ok(resident < base + boundMiB, `${what}: ${Math.round(resident)} MiB, ${Math.round(base)} at the start`);
  }
  t.comment(JSON.stringify(figures));
});

t.test("a server at its heap limit refuses requests, stops at SIGTERM, and loses no acknowledged write", async (t) => {
  const place = placeOf(t);
  const acknowledged = new Set<string>();
  const statuses: Record<string, number> = {};
  let next = 0;
  {
    await using server = await startServerProcess({
      ...place,
      nodeFlags: ["--max-old-space-size=160", "--expose-gc"],
    });
    // Each takes 30 times its bytes of the heap while it is handled.
    const data = Object.fromEntries(Array.from({ length: 30_000 }, (_, index) => [`key-${index}`, "v"]));
    let over = false;
    const flood = Array.from({ length: 16 }, async (_, client) => {
      while (!over) {
        const name = `m-${next++}`;
        const body = { metadata: { name }, data: client % 2 === 0 ? data : { small: name } };
        const { status } = await server.send("POST", MAPS, body).catch(() => ({ status: 0 }));
        statuses[status] = (statuses[status] ?? 0) + 1;
        if (status === 201) acknowledged.add(name);
        else await sleep(100);
      }
    });
    await sleep(6000);
    t.equal(server.child.exitCode ?? server.child.signalCode, null, `it works: ${server.errors()}`);
    const began = performance.now();
    server.child.kill("SIGTERM");
    const late = Symbol("late");
    const end = await Promise.race([server.ended, sleep(60_000, late, { ref: false })]);
    t.not(end, late, "it ends within a usual grace period");
    t.comment(
      `ended with ${String(end)} after ${Math.round(performance.now() - began)} ms, ${JSON.stringify(statuses)}`,
    );
    over = true;
    await Promise.all(flood);
  }
  t.ok(acknowledged.size > 0);
  await using server = await startServerProcess(place);
  const present = new Set<string>();
  for (let token = ""; ; ) {
    const { status, json } = await server.send("GET", `${MAPS}?limit=20&continue=${token}`);
    t.equal(status, 200);
    for (const { metadata } of json.items) present.add(metadata.name);
    token = json.metadata.continue ?? "";
    if (token === "") break;
  }
  t.same(
    [...acknowledged].filter((name) => !present.has(name)),
    [],
  );
});
