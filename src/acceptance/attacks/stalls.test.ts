/**
 * The requests that cost the most, sent to a real server with a small heap: how long other clients wait, and how much
 * memory each takes at its peak. `SVC_ATTACKS=all` (`make attacks`) sends all and prints a table; otherwise some.
 */
import { Agent } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { until } from "../../testing/std/until.ts";
import { hostileRequests } from "./hostile-requests.ts";
import { bindNamespaceAdmin, createUnboundToken, type MeasuredServer, startMeasuredServer } from "./measured-server.ts";
import { HEAP_MIB } from "./process-meter.ts";
import { validObjects } from "./valid-objects.ts";

const all = process.env.SVC_ATTACKS === "all";
/** Several times what is measured on an idle machine: a quadratic algorithm takes ten times this. */
const STALL_MS_MAX = 800;
/** Several times what is measured. The peak includes garbage of the young generation, which takes up to 48 MiB. */
const PEAK_MIB_MAX = 150;
/** Above the memory of a server that has compiled its code and filled its young generation. */
const KEPT_MIB_MAX = HEAP_MIB + 100;
/** Without the store, whose disk other processes may keep busy. */
const LIVEZ = "GET /livez?exclude=etcd";
const SAMPLE_EVERY_MS = 10;
const STRIDE = 5;

/**
 * Samples /livez on a connection of its own while `work` runs. Resolves with the longest response time, in CPU time of
 * the server's event loop: other processes of the machine do not count.
 */
async function longestWait(server: MeasuredServer, probe: Agent, work: () => Promise<void>): Promise<number> {
  let longest = 0;
  let over = false;
  const sample = async (): Promise<void> => {
    while (!over) {
      const began = server.busyMs();
      const { status } = await server.send({ line: LIVEZ }, "admin", probe);
      if (status !== 200) throw new Error(`/livez is answered with ${status}:\n${server.log().slice(-5000)}`);
      longest = Math.max(longest, server.busyMs() - began);
      await sleep(SAMPLE_EVERY_MS);
    }
  };
  const sampling = sample();
  await sleep(SAMPLE_EVERY_MS);
  try {
    await work();
  } finally {
    // What the request leaves to the caches is a part of it.
    await sleep(5 * SAMPLE_EVERY_MS);
    over = true;
    await sampling;
  }
  return longest;
}

t.setTimeout(1_800_000);

t.test("no request stops a server with a small heap", async (t) => {
  await using server = await startMeasuredServer(t.testdir());
  const probe = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  t.teardown(() => probe.destroy());
  const unbound = await createUnboundToken(server);
  await bindNamespaceAdmin(server);
  await longestWait(server, probe, async () => await sleep(500));
  // The first large request fills the young generation and has its code compiled.
  const [warmUp] = hostileRequests();
  for (let run = 0; run < 3; run++) await server.send({ ...warmUp!, line: `${warmUp!.line}?dryRun=All` }, "admin");
  const requests = [...hostileRequests(), ...validObjects()];
  const chosen = all ? requests : requests.filter((_, index) => index % STRIDE === 0);
  const first = server.rssMiB();
  const rows: string[] = [];
  for (const sent of chosen) {
    const { served } = sent;
    if (served !== undefined && chosen === requests) {
      const isServed = async () => (await server.send({ line: `GET ${served}` }, "admin")).status === 200;
      await until(() => `${served} is served`, isServed);
    }
    const users = [
      ["with rights", "admin"],
      ["without", unbound],
    ];
    if (sent.byNamespaceAdmin === true) users.unshift(["administrator of the namespace", "owner"]);
    for (const [user = "", token = ""] of users) {
      server.peakMiB();
      const before = server.rssMiB();
      let status = 0;
      const ms = await longestWait(server, probe, async () => {
        ({ status } = await server.send(sent, token));
      });
      const grown = server.peakMiB() - before;
      t.ok(grown < PEAK_MIB_MAX, `${sent.what}, ${user}: ${Math.round(grown)} MiB`);
      t.ok(ms < STALL_MS_MAX, `${sent.what}, ${user}: ${Math.round(ms)} ms`);
      t.ok(status > 0 && status < 500, `${sent.what}, ${user}: ${status}`);
      rows.push(`| ${sent.what} | ${user} | ${status} | ${Math.round(ms)} | ${Math.round(grown)} |`);
    }
  }
  const kept = server.rssMiB() - first;
  t.ok(kept < KEPT_MIB_MAX, `${Math.round(kept)} MiB of memory are kept`);
  if (!all) return;
  rows.push(`| all of these | | | | ${Math.round(kept)} kept |`);
  const head = "| request | user | status | longest stall, ms | peak memory, MiB |\n|---|---|---|---|---|";
  console.error(`${head}\n${rows.join("\n")}`);
});
