/** A server whose disk is full, and one whose store is damaged while it runs. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { metricLines, startServer, type TestServer } from "../flag-effects/apiserver/support.ts";

const MAPS = "/api/v1/namespaces/default/configmaps";
const NODE = "/api/v1/nodes/n1";

const post = (server: TestServer, name: string) =>
  server.send(`POST ${MAPS}`, { metadata: { name }, data: { text: `${name} `.repeat(20_000) } });

t.test("a server with a full disk deletes, reports the node's condition, and is not ready", async (t) => {
  const disk = mkdtempSync(join(tmpdir(), "svc-full-disk-"));
  t.teardown(() => rmSync(disk, { recursive: true }));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=192m", "tmpfs", disk], { stdio: "ignore" });
  } catch {
    t.comment("No file system can be mounted here");
    return;
  }
  t.teardown(() => execFileSync("umount", ["--lazy", disk]));
  await using server = await startServer({ "kvstore-servers": `level://${join(disk, "store")}` });
  for (const name of ["a", "b"]) await post(server, name);
  await server.send("POST /api/v1/nodes", { metadata: { name: "n1" } });
  const reserve = join(disk, "store/RESERVE");
  await server.until("the reserve", () => existsSync(reserve) && statSync(reserve).size === 32 * 2 ** 20);
  await server.clock.advance(60_000);
  t.match(await server.send("GET /readyz"), { status: 200 });
  const free = execFileSync("df", ["--output=avail", "--block-size=1", disk]).toString().split("\n")[1];
  writeFileSync(join(disk, "ballast"), Buffer.alloc(Number(free) - 4096));
  const pressure = { type: "DiskPressure", status: "True", reason: "KubeletHasDiskPressure", message: "full" };
  const patched = await server.send(
    `PATCH ${NODE}/status`,
    { status: { conditions: [pressure] } },
    { ...server.admin, "content-type": "application/strategic-merge-patch+json" },
  );
  t.equal(patched.status, 200);
  t.match((await server.send(`GET ${NODE}`)).json.status.conditions, [pressure]);
  t.match(await post(server, "c"), {
    status: 500,
    json: { kind: "Status", message: /^etcdserver: mvcc: database space exceeded: the store is full/ },
  });
  t.match(await server.send("GET /readyz"), {
    status: 500,
    json: /\n\[-\]kvstore-alarms failed: NOSPACE: the disk of the store has \d+ bytes left: only deletions/,
  });
  t.match(await server.send("GET /livez"), { status: 200 });
  t.match(await server.send(`DELETE ${MAPS}/a`), { status: 200 });
  t.match(await server.send(`GET ${MAPS}/a`), { status: 404 });
  rmSync(join(disk, "ballast"));
  await server.until("the server to be ready", async () => (await server.send("GET /readyz")).status === 200);
  t.match(await post(server, "c"), { status: 201 });
});

t.test("a server over the quota of its store reads and deletes, reports the alarm, and is not ready", async (t) => {
  await using server = await startServer({
    "kvstore-servers": `level://${join(t.testdir(), "store")}`,
    "kvstore-quota-bytes": "1500000",
  });
  // Compressed values would leave space.
  const create = (name: string, bytes = 150_000) =>
    server.send(`POST ${MAPS}`, { metadata: { name }, data: { text: randomBytes(bytes).toString("base64") } });
  const alarm = async () =>
    (await metricLines(server, "etcd_server_alarms")).filter((line) => line.includes('"NOSPACE"'));
  t.match(await alarm(), [/ 0$/]);
  const names = ["a", "b", "c", "d"];
  for (const name of names) t.match(await create(name), { status: 201 });
  // The last one exceeds the quota by so much that the alarm stays when LevelDB merges its log and tables.
  t.match(await create("e", 750_000), { status: 201 });
  t.match(await create("more"), { status: 500, json: { message: /^etcdserver: mvcc: database space exceeded: / } });
  t.match(await server.send("GET /readyz"), {
    status: 500,
    json: /\n\[-\]kvstore-alarms failed: NOSPACE: the store has \d+ bytes, its quota is 1500000/,
  });
  t.match(await server.send("GET /livez"), { status: 200 });
  t.match(await alarm(), [/ 1$/]);
  const { status, json } = await server.send(`GET ${MAPS}`);
  t.same([status, json.items.length], [200, 5]);
  for (const name of [...names, "e"]) t.match(await server.send(`DELETE ${MAPS}/${name}`), { status: 200 });
  t.match((await server.send(`GET ${MAPS}`)).json.items, []);
});

t.test("a server whose store is damaged while it runs serves cached objects, and reports the file", async (t) => {
  const path = join(t.testdir(), "store");
  const settings = { "kvstore-servers": `level://${path}` };
  {
    await using server = await startServer(settings);
    for (const name of ["a", "b"]) await post(server, name);
  }
  await using server = await startServer(settings);
  t.match(await server.send(`GET ${MAPS}/a`), { status: 200 });
  const table = readdirSync(path).find((name) => name.endsWith(".ldb")) ?? "none";
  const file = openSync(join(path, table), "r+");
  writeSync(file, Buffer.alloc(64), 0, 64, 100);
  closeSync(file);
  await server.until("the server not to be ready", async () => {
    await server.clock.advance(600_000);
    return (await server.send("GET /readyz")).status === 500;
  });
  const reason = `CORRUPT: the embedded store is damaged: the table ${table} is damaged: the checksum of the block`;
  t.match((await server.send("GET /readyz/kvstore-alarms")).json, `internal server error: ${reason}`);
  t.match(await server.send(`GET ${MAPS}/a`), { status: 200 });
  t.match(await server.send("GET /livez"), { status: 200 });
  t.match(await post(server, "c"), { status: 500, json: { message: new RegExp(`the table ${table} is damaged`) } });
});
