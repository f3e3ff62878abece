/** Acknowledged writes are durable: the server is killed under load, and its disk is filled. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t, { type Test } from "tap";
import { freePort } from "../../testing/std/free-port.ts";
import { until } from "../../testing/std/until.ts";

t.setTimeout(120_000);

const main = new URL("../../main.ts", import.meta.url).pathname;
const MAPS = "/api/v1/namespaces/default/configmaps";

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every kind
  readonly json: any;
}

interface Server extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly errors: () => string;
  send(method: string, path: string, body?: unknown): Promise<Answer>;
}

async function start(t: Test, home: string, store: string): Promise<Server> {
  writeFileSync(join(home, "tokens"), 'secret,admin,1,"system:masters"\n');
  const port = await freePort();
  const flags = [
    `--kvstore-servers=level://${store}`,
    `--secure-port=${port}`,
    "--bind-address=127.0.0.1",
    `--cert-dir=${home}`,
    `--token-auth-file=${join(home, "tokens")}`,
    "--authorization-mode=RBAC",
  ];
  const child = spawn(process.execPath, [main, "apiserver", ...flags], { stdio: ["ignore", "ignore", "pipe"] });
  t.teardown(() => child.kill("SIGKILL"));
  let errors = "";
  child.stderr.on("data", (data) => {
    errors = (errors + String(data)).slice(-10_000);
  });
  const gone = new Promise<void>((resolve) => child.on("exit", () => resolve()));
  const agent = new Agent({ keepAlive: true, maxSockets: 16, rejectUnauthorized: false });
  const send = (method: string, path: string, body?: unknown): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: "Bearer secret", "content-type": "application/json" };
      const sent = request({ host: "127.0.0.1", port, path, method, headers, agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode ?? 0, json: text.startsWith("{") ? JSON.parse(text) : text });
        });
      });
      sent.on("error", reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  const server: Server = {
    child,
    errors: () => errors,
    send,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await gone;
      agent.destroy();
    },
  };
  try {
    await until(
      () => `the server is ready; its errors: ${errors}`,
      async () => {
        if (child.exitCode !== null) throw new Error(`The server does not start: ${errors}`);
        return (await send("GET", "/readyz").catch(() => undefined))?.status === 200;
      },
    );
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
  return server;
}

function homeOf(t: Test): string {
  const home = mkdtempSync(join(tmpdir(), "svc-durable-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

const mapOf = (name: string, round: string) => ({ metadata: { name }, data: { round, filling: "x".repeat(800) } });

/** Writes until the server is killed. */
async function load(server: Server, round: number, acknowledged: Map<string, string>, tried: Map<string, string>) {
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
