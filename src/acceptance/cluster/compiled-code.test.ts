/** dist/svc keeps the code that V8 compiled for its next start. */
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { freePort } from "../../testing/std/free-port.ts";
import { LoggedProcess } from "../../testing/std/logged-process.ts";
import { programs } from "./cluster.ts";

/** A server writes the file 20 s after its start. */
const WRITTEN_MS_MAX = 60_000;
const KEPT_MS = 25_000;

t.setTimeout(300_000);
const directory = mkdtempSync(join(tmpdir(), "svc-compiled-"));
t.teardown(() => rmSync(directory, { recursive: true, force: true }));

async function startServer(t: Test, name: string, cache: string): Promise<LoggedProcess> {
  const port = await freePort();
  const logFile = join(directory, `${name}.log`);
  const flags = [`--cert-dir=${join(directory, name)}-pki`, "--bind-address=127.0.0.1", `--secure-port=${port}`];
  const words = [...programs.bundle, "apiserver", "--kvstore-servers=memory://", "--workers=1", ...flags];
  const env = { SVC_CODE_CACHE: cache, SVC_NODE: process.execPath };
  const server = new LoggedProcess(words, { logFile, env });
  const isServing = (): boolean => readFileSync(logFile, "utf8").includes("Serving securely");
  for (let waited = 0; !isServing() && waited < WRITTEN_MS_MAX; waited += 50) await sleep(50);
  t.ok(isServing(), `${name}: the server serves`);
  return server;
}

/** The path of the only file; undefined while there is none. */
function fileIn(cache: string): string | undefined {
  const names = existsSync(cache) ? readdirSync(cache).filter((name) => !name.includes(".new-")) : [];
  return names[0] === undefined ? undefined : join(cache, names[0]);
}

interface Case {
  readonly name: string;
  readonly change: (file: string) => void;
  readonly isRewritten: boolean;
}

const cases: readonly Case[] = [
  { name: "intact", change: () => {}, isRewritten: false },
  {
    name: "damaged",
    change: (file) => {
      const bytes = readFileSync(file);
      for (let at = 100; at < bytes.length; at += 4096) bytes[at]! ^= 0x40;
      writeFileSync(file, bytes);
    },
    isRewritten: true,
  },
];

t.test("the first start writes the file, and each state of it lets the next one start", async (t) => {
  const first = join(directory, "first", "cache");
  await using server = await startServer(t, "first", first);
  for (let waited = 0; fileIn(first) === undefined && waited < WRITTEN_MS_MAX; waited += 100) await sleep(100);
  const written = fileIn(first);
  t.ok(written !== undefined, "the file is written");
  if (written === undefined) return;
  t.equal(lstatSync(first).mode & 0o777, 0o700);
  t.equal(lstatSync(written).mode & 0o777, 0o600);
  await server.stop("SIGTERM");

  await Promise.all(
    cases.map(async ({ name, change, isRewritten }) => {
      const cache = join(directory, `${name} cache`);
      mkdirSync(cache, { mode: 0o700 });
      cpSync(first, cache, { recursive: true });
      const file = fileIn(cache)!;
      change(file);
      const before = lstatSync(file).ino;
      await using _ = await startServer(t, name, cache);
      await sleep(KEPT_MS);
      t.equal(lstatSync(file).ino !== before, isRewritten, `${name}: ${isRewritten ? "written again" : "kept"}`);
      t.equal(readdirSync(cache).length, 1, `${name}: nothing else is left`);
    }),
  );
});

t.test("an empty name switches it off", async (t) => {
  await using _ = await startServer(t, "off", "");
  await sleep(KEPT_MS);
  t.notMatch(readdirSync(process.cwd()).join(), /svc-apiserver-/);
});
