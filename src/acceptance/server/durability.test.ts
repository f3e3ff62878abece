/** Acknowledged writes are durable: the server is killed under load, and its disk is filled. */

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t, { type Test } from "tap";
import { type Answer, type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";

t.setTimeout(120_000);

const MAPS = "/api/v1/namespaces/default/configmaps";

async function start(t: Test, home: string, store: string): Promise<ServerProcess> {
  const server = await startServerProcess({ home, store });
  t.teardown(() => server.child.kill("SIGKILL"));
  return server;
}

function homeOf(t: Test): string {
  const home = mkdtempSync(join(tmpdir(), "svc-durable-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

const mapOf = (name: string, round: string) => ({ metadata: { name }, data: { round, filling: "x".repeat(800) } });

/** Writes until the server is killed. */
async function load(
  server: ServerProcess,
  round: number,
  acknowledged: Map<string, string>,
  tried: Map<string, string>,
) {
  let next = 0;
  let count = 0;
  const write = async (method: string, path: string, name: string, value: string, wanted: number): Promise<void> => {
    tried.set(name, value);
    const { status } = await server.send(method, path, mapOf(name, value));
    if (status !== wanted) throw new Error(`${method} ${path} answered ${status}`);
    acknowledged.set(name, value);
    if (++count === 250) server.child.kill("SIGKILL");
  };
  const writer = async (): Promise<void> => {
    for (;;) {
      const name = `r${round}-${next++}`;
      await write("POST", MAPS, name, `${round} first`, 201);
      if (next % 3 === 0) await write("PUT", `${MAPS}/${name}`, name, `${round} second`, 200);
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: 16 }, writer));
  return ends.map((end) => (end.status === "rejected" ? String(end.reason) : "")).filter((why) => /answered/.test(why));
}

t.test(
  "the server has all acknowledged writes, and no partial ones, after it is killed under load",
  { timeout: 60_000 },
  async (t) => {
    const home = homeOf(t);
    const store = join(home, "store");
    const acknowledged = new Map<string, string>();
    const tried = new Map<string, string>();
    let revision = 0;
    for (let round = 0; round < 3; round++) {
      await using server = await start(t, home, store);
      const { json } = await server.send("GET", MAPS);
      const found = new Map<string, string>();
      const halves: string[] = [];
      for (const { metadata, data } of json.items) {
        if (!tried.has(metadata.name)) continue;
        found.set(metadata.name, data.round);
        if (metadata.name !== "after" && data.filling.length !== 800) halves.push(metadata.name);
      }
      const lost = [...acknowledged].filter(
        ([name, value]) => found.get(name) !== value && found.get(name) !== tried.get(name),
      );
      t.same(lost, [], `${acknowledged.size} were acknowledged`);
      const invented = [...found].filter(
        ([name, value]) => acknowledged.get(name) !== value && tried.get(name) !== value,
      );
      t.same([invented, halves], [[], []]);
      t.ok(Number(json.metadata.resourceVersion) >= revision, "revisions go on");
      revision = Number(json.metadata.resourceVersion);
      if (round < 2) {
        t.same(await load(server, round, acknowledged, tried), [], "until it was killed it answered as it should");
        continue;
      }
      const watching = server.send("GET", `${MAPS}?watch=true&resourceVersion=${revision}&timeoutSeconds=2`);
      await server.send("POST", MAPS, mapOf("after", "all"));
      t.match((await watching).json, { type: "ADDED", object: { metadata: { name: "after" } } });
    }
  },
);

t.test(
  "the server refuses writes while its disk is full, serves reads, and writes again when there is space",
  { timeout: 60_000 },
  async (t) => {
    const home = homeOf(t);
    const disk = join(home, "disk");
    mkdirSync(disk);
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=48m", "tmpfs", disk], { stdio: "ignore" });
    } catch {
      t.comment("No file system can be mounted here");
      return;
    }
    t.teardown(() => execFileSync("umount", ["--lazy", disk]));
    {
      await using server = await start(t, home, join(disk, "store"));
      const ballast = join(disk, "ballast");
      writeFileSync(ballast, Buffer.alloc(36 * 2 ** 20));
      // Random, because compressed data would not fill the disk.
      const filling = randomBytes(675_000).toString("base64");
      const write = async (name: string) => await server.send("POST", MAPS, { metadata: { name }, data: { filling } });
      const acknowledged: string[] = [];
      let refused: Answer | undefined;
      for (let i = 0; i < 60 && refused === undefined; i++) {
        const answer = await write(`big-${i}`);
        if (answer.status === 201) acknowledged.push(`big-${i}`);
        else refused = answer;
      }
      t.match(refused, { status: 500, json: { kind: "Status", message: /the store is full/ } });
      t.equal((await server.send("GET", `${MAPS}/big-0`)).status, 200, "still readable");
      t.equal(
        (await server.send("GET", MAPS)).json.items.filter(({ data }: Answer["json"]) => data.filling).length,
        acknowledged.length,
      );
      rmSync(ballast);
      let again = 0;
      for (let tries = 0; tries < 100 && again !== 201; tries++) {
        await setTimeout(200);
        again = (await write("later")).status;
      }
      t.equal(again, 201);
      const statuses = [...acknowledged, "later"].map(
        async (name) => (await server.send("GET", `${MAPS}/${name}`)).status,
      );
      t.same(new Set(await Promise.all(statuses)), new Set([200]), "nothing acknowledged is lost");
    }
  },
);
