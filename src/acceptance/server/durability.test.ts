/**
 * Acknowledged writes are durable: the server is killed under load, and its disk is filled. `make durability` kills it
 * more often:
 *
 *     SVC_DURABILITY_KILLS=300 SEED=123 node src/acceptance/server/durability.test.ts
 */

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t, { type Test } from "tap";
import { seededRandom } from "../../std/crypto/random.ts";
import { type Answer, type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";

const KILLS = Number(process.env.SVC_DURABILITY_KILLS ?? 2);
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

t.setTimeout(120_000 + KILLS * 20_000);

const MAPS = "/api/v1/namespaces/default/configmaps";
const WRITERS = 16;
const NAMES_PER_WRITER = 25;
const FILLING_LENGTH = 800;
/** Of a deleted object. */
const ABSENT = "";

async function start(t: Test, home: string, store: string, flags: readonly string[] = []): Promise<ServerProcess> {
  const server = await startServerProcess({ home, store, flags });
  t.teardown(() => server.child.kill("SIGKILL"));
  return server;
}

function homeOf(t: Test): string {
  const home = mkdtempSync(join(tmpdir(), "svc-durable-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

const mapOf = (name: string, value: string) => ({
  metadata: { name },
  data: { value, filling: "x".repeat(FILLING_LENGTH) },
});

/** Other objects mark the ends of watches. */
const isLoaded = (name: string): boolean => /^m\d+$/.test(name);

interface WatchedChange {
  readonly revision: number;
  readonly name: string;
  /** `ABSENT` for a deletion. */
  readonly value: string;
}

interface Watched {
  readonly changes: readonly WatchedChange[];
  /** The revision was too old: the client has to list again. */
  readonly isExpired: boolean;
}

/** Receives changes after `from`, until the connection ends or the change of revision `to` has arrived. */
function watchChanges(server: ServerProcess, from: number, to = Number.POSITIVE_INFINITY): Promise<Watched> {
  const path = `${MAPS}?watch=true&resourceVersion=${from}`;
  const headers = { authorization: "Bearer secret" };
  return new Promise((resolve, reject) => {
    const changes: WatchedChange[] = [];
    const sent = request({ host: "127.0.0.1", port: server.port, path, headers, rejectUnauthorized: false });
    sent.setTimeout(30_000, () => reject(new Error(`Nothing arrives after ${changes.at(-1)?.revision ?? from}`)));
    const end = (isExpired: boolean): void => {
      sent.destroy();
      resolve({ changes, isExpired });
    };
    sent.on("error", () => end(false));
    sent.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("error", () => end(false));
      response.on("close", () => end(false));
      response.on("data", (part: string) => {
        const lines = (text + part).split("\n");
        text = lines.pop() ?? "";
        for (const line of lines) {
          const { type, object } = JSON.parse(line);
          if (type === "ERROR") return object.code === 410 ? end(true) : reject(new Error(line));
          const revision = Number(object.metadata.resourceVersion);
          const value = type === "DELETED" ? ABSENT : object.data.value;
          if (isLoaded(object.metadata.name)) changes.push({ revision, name: object.metadata.name, value });
          if (revision >= to) end(false);
        }
      });
    });
    sent.end();
  });
}

/** The writes to one name, which one client sends one after the other. */
interface NameHistory {
  /** Before the writes. */
  readonly initial: string;
  readonly acknowledged: string[];
  /** The write that received no response. */
  pending: string | undefined;
}

/** The writes between a start of the server and its end. */
class WriteLoad {
  readonly names = new Map<string, NameHistory>();
  readonly unexpected: string[] = [];
  acknowledged = 0;
  readonly #pick: (count: number) => number;

  constructor(state: ReadonlyMap<string, string>, pick: (count: number) => number) {
    this.#pick = pick;
    for (let i = 0; i < WRITERS * NAMES_PER_WRITER; i++) {
      const name = `m${i}`;
      this.names.set(name, { initial: state.get(name) ?? ABSENT, acknowledged: [], pending: undefined });
    }
  }

  /** Creates, replaces and deletes objects until the server is killed, some time after `count` responses. */
  async run(server: ServerProcess, title: string, count: number): Promise<void> {
    const kill = (): void => void globalThis.setTimeout(() => server.child.kill("SIGKILL"), this.#pick(20));
    if (count === 0) kill();
    const write = async (name: string, history: NameHistory, number: number): Promise<void> => {
      const last = history.acknowledged.at(-1) ?? history.initial;
      const isDeleted = last !== ABSENT && this.#pick(3) === 0;
      const value = isDeleted ? ABSENT : `${title} ${number}`;
      const method = isDeleted ? "DELETE" : last === ABSENT ? "POST" : "PUT";
      history.pending = value;
      const path = method === "POST" ? MAPS : `${MAPS}/${name}`;
      const { status } = await server.send(method, path, isDeleted ? undefined : mapOf(name, value));
      if (status !== (method === "POST" ? 201 : 200)) {
        this.unexpected.push(`${method} ${name} gets ${status}`);
        throw new Error("Unexpected status");
      }
      history.pending = undefined;
      history.acknowledged.push(value);
      if (++this.acknowledged === count) kill();
    };
    const all = [...this.names];
    const writer = async (_: unknown, index: number): Promise<void> => {
      const own = all.slice(index * NAMES_PER_WRITER, (index + 1) * NAMES_PER_WRITER);
      for (let number = index; ; number += WRITERS) {
        const [name, history] = own[this.#pick(own.length)]!;
        await write(name, history, number);
      }
    };
    await Promise.allSettled(Array.from({ length: WRITERS }, writer));
  }

  /** Describes names whose objects are not the latest acknowledged ones, nor those of the pending write. */
  findLost(state: ReadonlyMap<string, string>): string[] {
    return [...this.names].flatMap(([name, { initial, acknowledged, pending }]) => {
      const found = state.get(name) ?? ABSENT;
      const expected = acknowledged.at(-1) ?? initial;
      return found === expected || found === pending ? [] : [`${name} is "${found}", not "${expected}"`];
    });
  }

  /** Describes names whose changes are not the acknowledged writes in order, each once, and perhaps the pending one. */
  findGaps(changes: readonly WatchedChange[], isWhole: boolean): string[] {
    const received = Map.groupBy(changes, ({ name }) => name);
    return [...this.names].flatMap(([name, { acknowledged, pending }]) => {
      const values = (received.get(name) ?? []).map(({ value }) => value);
      const expected = pending === undefined ? acknowledged : [...acknowledged, pending];
      const isComplete = !isWhole || values.length >= acknowledged.length;
      const isPrefix = values.every((value, index) => value === expected[index]);
      return isComplete && isPrefix ? [] : [`${name} changed to [${values}] instead of [${acknowledged}]`];
    });
  }

  countPending(state: ReadonlyMap<string, string>): { readonly applied: number; readonly absent: number } {
    const pending = [...this.names].filter(([, history]) => history.pending !== undefined);
    const applied = pending.filter(([name, history]) => (state.get(name) ?? ABSENT) === history.pending).length;
    return { applied, absent: pending.length - applied };
  }
}

/** The objects; `halves` are those with a part of their content. */
async function readState(server: ServerProcess) {
  const { json } = await server.send("GET", MAPS);
  const maps: Answer["json"][] = json.items.filter(({ metadata }: Answer["json"]) => isLoaded(metadata.name));
  const state = new Map<string, string>(maps.map(({ metadata, data }) => [metadata.name, data.value]));
  const halves = maps.filter(({ data }) => data.filling?.length !== FILLING_LENGTH || !data.value);
  return {
    state,
    halves: halves.map(({ metadata }) => metadata.name),
    revision: Number(json.metadata.resourceVersion),
  };
}

t.test(
  "the server has all acknowledged writes, and no partial ones, after it is killed under load",
  { timeout: 60_000 + KILLS * 20_000 },
  async (t) => {
    t.comment(`SEED=${seed}`);
    const home = homeOf(t);
    const store = join(home, "store");
    const random = seededRandom(seed);
    const pick = (count: number): number => Math.floor(random.fraction() * count);
    const totals = { kills: 0, killsDuringStart: 0, acknowledged: 0, lost: 0, applied: 0, absent: 0 };
    const watches = { changesBeforeKill: 0, resumed: 0, changesResumed: 0, gaps: 0, listedAgain: 0 };
    let load = new WriteLoad(new Map(), pick);
    let before: Watched = { changes: [], isExpired: false };
    let started = 0;
    for (let round = 0; round <= KILLS; round++) {
      if (round % 4 === 3) {
        const wait = pick(1500);
        const onSpawn = (child: ServerProcess["child"]): void =>
          void globalThis.setTimeout(() => child.kill("SIGKILL"), wait);
        const ready = await startServerProcess({ home, store, onSpawn }).catch(() => undefined);
        await ready?.[Symbol.asyncDispose]();
        totals.killsDuringStart++;
      }
      // Without a cache a watch continues from the history in the store; a cache has none after a start.
      const isCached = round % 4 === 1;
      await using server = await start(t, home, store, isCached ? [] : ["--watch-cache-sizes=configmaps#0"]);
      const { state, halves, revision } = await readState(server);
      const lost = load.findLost(state);
      t.ok(revision >= started, "revisions go on");
      const from = before.changes.at(-1)?.revision ?? started;
      t.ok(from <= revision, "no change was watched that is not in the store");
      const marker = await server.send("POST", MAPS, mapOf(`marker-${round}`, "last"));
      const after = await watchChanges(server, from, Number(marker.json.metadata.resourceVersion));
      const gaps = load.findGaps([...before.changes, ...after.changes], !after.isExpired);
      t.same({ lost, halves, gaps, unexpected: load.unexpected }, { lost: [], halves: [], gaps: [], unexpected: [] });
      if (!isCached) t.notOk(after.isExpired, "the watch continues after its last change");
      totals.acknowledged += load.acknowledged;
      totals.lost += lost.length;
      const pending = load.countPending(state);
      totals.applied += pending.applied;
      totals.absent += pending.absent;
      watches.changesBeforeKill += before.changes.length;
      watches.gaps += gaps.length;
      watches.changesResumed += after.changes.length;
      if (after.isExpired) watches.listedAgain++;
      else if (round > 0) watches.resumed++;
      started = Number(marker.json.metadata.resourceVersion);
      if (round < KILLS) {
        load = new WriteLoad(state, pick);
        const watching = watchChanges(server, started);
        await load.run(server, String(round), pick(8) === 0 ? 0 : pick(400));
        before = await watching;
        totals.kills++;
        continue;
      }
      const watching = server.send("GET", `${MAPS}?watch=true&resourceVersion=${started}&timeoutSeconds=2`);
      await server.send("POST", MAPS, mapOf("after", "all"));
      t.match((await watching).json, { type: "ADDED", object: { metadata: { name: "after" } } });
    }
    t.ok(totals.acknowledged > 0);
    t.comment(`writes: ${JSON.stringify(totals)}`);
    t.comment(`watches: ${JSON.stringify(watches)}`);
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
      writeFileSync(ballast, Buffer.alloc(22 * 2 ** 20));
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
