import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { Level } from "level";
import t, { type Test } from "tap";
import { networkTransport } from "../client/transport/transport.ts";
import { makeRequest } from "../http/request.ts";
import { silentLogger } from "../std/log/logger.ts";
import { systemClock } from "../std/time/clock.ts";
import { FORMAT_KEY, logKey } from "../storage/level/keys.ts";
import { openLevelStore } from "../storage/level/level.ts";
import { encodeNumber } from "../storage/level/record.ts";
import type { Revision } from "../storage/store.ts";
import type { ApiServerConfig } from "./config/config.ts";
import { defaultConfig } from "./config/default-config.ts";
import { startApiServer } from "./server.ts";

async function directory(t: Test): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "svc-apiserver-"));
  t.teardown(() => rm(dir, { recursive: true }));
  return dir;
}

const deps = { clock: systemClock, log: silentLogger };
const serving = (certDir: string): Pick<ApiServerConfig, "serving"> => ({
  serving: { ...defaultConfig.serving, certDir },
});

t.test("startApiServer() serves TLS with a certificate that only the first start generates", async (t) => {
  const dir = await directory(t);
  const certFile = join(dir, "apiserver.crt");
  let first = "";
  for (const start of [1, 2]) {
    const server = await startApiServer({ ...defaultConfig, ...serving(dir) }, deps);
    const ca = await readFile(certFile, "utf8");
    if (start === 1) first = ca;
    t.equal(ca, first, "the second start uses the first's");
    const transport = networkTransport({ server: `https://127.0.0.1:${server.address.port}`, ca });
    const answer = await transport(makeRequest({ path: "/version" }));
    t.equal(answer.status, 200);
    t.equal(await server.healthy(), true);
    await transport[Symbol.asyncDispose]();
    await server.close();
    await server.close();
  }
  t.equal((await stat(join(dir, "apiserver.key"))).mode & 0o777, 0o600);
});

t.test("startApiServer() reads the objects of the previous start from the embedded store", async (t) => {
  const dir = await directory(t);
  const storage = { ...defaultConfig.storage, urls: [`level://${join(dir, "kvstore")}`] };
  const config = { ...defaultConfig, ...serving(dir), storage };
  let uid: string | undefined;
  for (const start of [1, 2]) {
    await using server = await startApiServer(config, deps);
    const token = server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
    const headers = { authorization: `Bearer ${token}` };
    const answer = await server.handler(makeRequest({ path: "/api/v1/namespaces/default", headers }));
    const body = JSON.parse(Buffer.concat(answer.body as readonly Uint8Array[]).toString());
    if (start === 1) uid = body.metadata.uid;
    t.equal(body.metadata.uid, uid);
  }
});

/** Changes the files of a closed store. */
async function tamper(path: string, change: (level: Level<Buffer, Buffer>) => Promise<void>): Promise<void> {
  const level = new Level<Buffer, Buffer>(path, { keyEncoding: "buffer", valueEncoding: "buffer" });
  await change(level);
  await level.close();
}

t.test("svc apiserver exits with code 1 and one error line when it cannot open the store", async (t) => {
  const dir = await directory(t);
  const main = new URL("../main.ts", import.meta.url).pathname;
  const run = (path: string) =>
    new Promise<{ code: number | null; lines: readonly string[] }>((resolve) => {
      const flags = [`--kvstore-servers=level://${path}`, "--secure-port=17993", `--cert-dir=${dir}`, "--workers=1"];
      const child = spawn(process.execPath, [main, "apiserver", "--bind-address=127.0.0.1", ...flags]);
      let text = "";
      child.stderr.on("data", (data) => {
        text += String(data);
      });
      child.on("close", (code) => resolve({ code, lines: text.split("\n").filter((line) => line.startsWith("E")) }));
    });
  const openStore = (name: string) => openLevelStore({ path: join(dir, name), ...deps, compactionIntervalMs: 0 });
  const corruptions: readonly (readonly [name: string, (path: string) => Promise<void>, message: RegExp])[] = [
    ["newer", (path) => tamper(path, (level) => level.put(FORMAT_KEY, encodeNumber(FORMAT_KEY, 99))), /of format 99,/],
    ["gap", (path) => tamper(path, (level) => level.del(logKey(2 as Revision))), /its history lacks revision 2/],
    ["current", (path) => writeFile(join(path, "CURRENT"), "MANIFEST-999999\n"), /Cannot open the embedded store/],
  ];
  for (const [name] of corruptions) {
    await using store = await openStore(name);
    for (const key of ["/registry/a", "/registry/b"]) await store.create(key, Buffer.from("x"));
  }
  await using _held = await openStore("held");
  await writeFile(join(dir, "file"), "");
  const unusablePaths = [
    [join(dir, "file"), /EEXIST/],
    [join(dir, "file/below"), /ENOTDIR/],
    ["/proc/svc-unusablePaths/store", /ENOENT/],
  ] as const;
  const invalidPaths = unusablePaths.map(async ([path, reason]) => [path, await run(path), reason] as const);
  const corrupted = corruptions.map(async ([name, change, message]) => {
    await change(join(dir, name));
    return [name, await run(join(dir, name)), message] as const;
  });
  const locked = (async () => ["held", await run(join(dir, "held")), /another process has it open/] as const)();
  for (const [name, { code, lines }, message] of await Promise.all([...corrupted, ...invalidPaths, locked])) {
    t.same([code, lines.length], [1, 1], `${name}: ${lines.join("; ")}`);
    t.match(lines[0], message);
  }
});

t.test("startApiServer() closes all resources when it cannot start", async (t) => {
  const dir = await directory(t);
  const kinds = ["FSEventWrap", "PipeServerWrap", "TCPServerWrap", "TCPSocketWrap", "TLSWrap", "Timeout"];
  const open = () => process.getActiveResourcesInfo().filter((name) => kinds.includes(name));
  // Other files of tests run in the same process.
  const before = open().length;
  const ranges = { ...defaultConfig.services, clusterIpRanges: ["10.0.0.0/32"] };
  const storage = { ...defaultConfig.storage, urls: [`level://${join(dir, "store")}`] };
  for (const config of [
    { authorizationModes: ["Nonsense"] },
    { services: ranges },
    { services: ranges, storage },
    { embeddedControllers: ["none"] },
    { bindAddress: "203.0.113.9" },
  ]) {
    await t.rejects(startApiServer({ ...defaultConfig, ...serving(dir), ...config }, deps), JSON.stringify(config));
  }
  // Closed resources are removed in a later turn of the event loop.
  for (let turns = 0; turns < 1000 && open().length > before; turns++) await setImmediate();
  t.ok(open().length <= before, open().join());
  // The store is unlocked.
  await (await openLevelStore({ path: join(dir, "store"), ...deps, compactionIntervalMs: 0 }))[Symbol.asyncDispose]();
});

t.test("startApiServer() rejects with one sentence when it cannot start", async (t) => {
  const dir = await directory(t);
  const start = (config: Partial<ApiServerConfig>) =>
    startApiServer({ ...defaultConfig, ...serving(dir), ...config }, deps);
  await t.rejects(start({ authorizationModes: ["Nonsense"] }), { message: /mode "Nonsense" is unknown/ });
  await t.rejects(start({ storage: { ...defaultConfig.storage, urls: ["ftp://x"] } }), { message: /Cannot use store/ });
  const certificate = { certFile: join(dir, "none.crt"), keyFile: join(dir, "none.key") };
  await t.rejects(start({ serving: { ...defaultConfig.serving, certificate } }), {
    message: /none\.crt .* does not exist/,
  });
  await writeFile(join(dir, "tokens"), "one,two\n");
  const authentication = { ...defaultConfig.authentication, tokenFile: join(dir, "tokens") };
  await t.rejects(start({ authentication }), { message: /tokens/ });
  await t.rejects(start({ embeddedControllers: ["none"] }), { message: /unknown controller "none"/ });
  const first = await start({});
  await t.rejects(start({ securePort: first.address.port }), { message: /another port with --secure-port/ });
  await first.close();
});
