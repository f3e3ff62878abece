/** Large transfers of the oldest and the newest kubectl: cp, exec -i and port-forward, with svc up and containerd. */
import { spawn } from "node:child_process";
import { createHash, type Hash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createReadStream, mkdirSync, mkdtempSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import t, { type Test } from "tap";
import { kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement, programs, TestCluster } from "./cluster.ts";
import { exampleImage } from "./example-image.ts";
import { endsOf, KubectlSession } from "./kubectl-sessions.ts";

const RUN_MS_MAX = 850_000;
const MIB = 2 ** 20;
const FILE_BYTES = 100 * MIB;
const STREAM_BYTES = 1024 * MIB;
const PORTS = { receive: 9101, send: 9102, identity: 9103 };
/** Without half-close, which port-forward does not have: the server ends after the expected bytes. */
const SERVERS = [
  "id=$(cat /proc/sys/kernel/random/uuid)",
  `busybox nc -ll -p ${PORTS.receive} -e sh -c 'busybox head -c ${STREAM_BYTES} | sha256sum' &`,
  `busybox nc -ll -p ${PORTS.send} -e busybox head -c ${STREAM_BYTES} /dev/zero &`,
  `busybox nc -ll -p ${PORTS.identity} -e echo $id &`,
  "sleep 36000 & wait $!",
].join("\n");

t.setTimeout(RUN_MS_MAX);
const missing = findMissingRequirement();
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("kubectl transfers large files and streams", { timeout: RUN_MS_MAX }, async (t) => {
    await using cluster = await TestCluster.create({ program: programs.bundle });
    await cluster.start("--stop-pods");
    await createPod(cluster);
    for (const { path } of await endsOf(kubectlPaths())) {
      const session = { cluster, path };
      await t.test(`cp, ${path}`, { timeout: RUN_MS_MAX }, (t) => testCopy(t, session));
      await t.test(`exec -i, ${path}`, { timeout: RUN_MS_MAX }, (t) => testExec(t, session));
      await t.test(`port-forward, ${path}`, { timeout: RUN_MS_MAX }, (t) => testPortForward(t, session));
    }
  });
}

interface Session {
  readonly cluster: TestCluster;
  readonly path: string;
}

async function createPod(cluster: TestCluster): Promise<void> {
  const container = { name: "c", image: exampleImage, command: ["sh", "-c", SERVERS] };
  const spec = { terminationGracePeriodSeconds: 0, containers: [container] };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "web" }, spec };
  await cluster.kubectl(["create", "-f", "-"], { input: JSON.stringify(pod) });
  await cluster.kubectl(["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"]);
}

async function run({ cluster, path }: Session, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await cluster.kubectl(args, { binary: path, timeoutMs: RUN_MS_MAX });
  if (code !== 0) throw new Error(`kubectl ${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

async function testCopy(t: Test, session: Session): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), "svc-transfers-"));
  t.teardown(() => rmSync(scratch, { recursive: true }));
  const from = join(scratch, "from");
  mkdirSync(join(from, "deep/er"), { recursive: true });
  mkdirSync(join(from, "empty"));
  writeFileSync(join(from, "deep/er/large"), randomBytes(FILE_BYTES));
  writeFileSync(join(from, "name with spaces"), "spaces\n");
  writeFileSync(join(from, "empty file"), "");
  const sums = await sumFiles(from);
  symlinkSync("deep/er/large", join(from, "link"));
  symlinkSync("deep", join(from, "directory link"));

  await run(session, "exec", "web", "--", "busybox", "rm", "-rf", "/tmp/to");
  await run(session, "cp", from, "web:/tmp/to");
  const list = "cd /tmp/to && busybox find . -type f -exec sha256sum {} +";
  t.same(parseSums(await run(session, "exec", "web", "--", "sh", "-c", list)), sums, "files in the container");
  const links = ["link", "directory link"].map((name) => `busybox readlink "/tmp/to/${name}"`).join("; ");
  t.equal(await run(session, "exec", "web", "--", "sh", "-c", links), "deep/er/large\ndeep\n", "links");
  t.equal(await run(session, "exec", "web", "--", "ls", "/tmp/to/empty"), "", "an empty directory");

  const back = join(scratch, "back");
  await run(session, "cp", "web:/tmp/to", back);
  t.same(await sumFiles(back), sums, "files that came back");
  t.equal(readlinkSync(join(from, "link")), "deep/er/large");
}

/** Sums by path. kubectl does not copy links from containers. */
async function sumFiles(directory: string): Promise<Readonly<Record<string, string>>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const sums = entries
    .filter((entry) => entry.isFile())
    .map(async ({ parentPath, name }): Promise<[string, string]> => {
      const hash = createHash("sha256");
      await pipeline(createReadStream(join(parentPath, name)), hash);
      return [`.${join(parentPath, name).slice(directory.length)}`, hash.digest("hex")];
    });
  return Object.fromEntries(await Promise.all(sums));
}

function parseSums(text: string): Readonly<Record<string, string>> {
  const lines = [...text.matchAll(/^(\w+) {2}(.*)$/gm)];
  return Object.fromEntries(lines.map(([, sum = "", path = ""]) => [path, sum]));
}

/** `STREAM_BYTES` that do not repeat within a chunk; each chunk updates the hash. */
function* generate(hash: Hash): Generator<Buffer> {
  const chunk = randomBytes(MIB);
  for (let index = 0; index < STREAM_BYTES / MIB; index++) {
    const numbered = Buffer.from(chunk);
    numbered.writeUInt32LE(index);
    hash.update(numbered);
    yield numbered;
  }
}

async function testExec(t: Test, { cluster, path }: Session): Promise<void> {
  const child = spawn(path, ["exec", "-i", "web", "--", "sha256sum"], { env: cluster.env, stdio: "pipe" });
  const hash = createHash("sha256");
  const began = performance.now();
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  const closed = once(child, "close");
  await pipeline(Readable.from(generate(hash)), child.stdin);
  t.equal((await closed)[0], 0);
  t.equal(output.split(" ")[0], hash.digest("hex"), "1 GiB through sha256sum");
  t.comment(formatRate(began));
}

function formatRate(began: number): string {
  return `${Math.round(STREAM_BYTES / MIB / ((performance.now() - began) / 1000))} MiB/s`;
}

async function testPortForward(t: Test, { cluster, path }: Session): Promise<void> {
  const ports = Object.values(PORTS).map((port) => `:${port}`);
  const session = new KubectlSession(path, ["port-forward", "web", ...ports], cluster.env);
  const local = await until("the forwarded ports", () => {
    const found = [...session.output.matchAll(/127\.0\.0\.1:(\d+) -> (\d+)/g)];
    if (found.length < ports.length) return undefined;
    return (port: number): number => Number(found.find(([, , remote]) => Number(remote) === port)?.[1]);
  });
  const hash = createHash("sha256");
  const began = performance.now();
  const sending = exchange(local(PORTS.receive), Readable.from(generate(hash)), (got) => got.endsWith("\n"));
  t.equal((await sending).split(" ")[0], hash.digest("hex"), "1 GiB to the pod");
  t.comment(`to the pod: ${formatRate(began)}`);
  await testReceive(t, local(PORTS.send));

  const identity = (): Promise<string> =>
    exchange(local(PORTS.identity), Readable.from([]), (got) => got.endsWith("\n")).catch(() => "");
  const before = await until("the container's identity", async () => (await identity()) || undefined);
  const restarts = await countRestarts(cluster);
  await cluster.kubectl(["exec", "web", "--", "sh", "-c", "kill -9 $(busybox pidof sleep)"]);
  await until("the next container", async () => (await countRestarts(cluster)) > restarts);
  await until("the servers of the next container", async () => {
    const { stdout } = await cluster.kubectl(["exec", "web", "--", "busybox", "netstat", "-ltn"]);
    return Object.values(PORTS).every((port) => stdout.includes(`:${port} `));
  });
  const after = await identity();
  t.match(after, /^\S+\n$/, "the same port-forward reaches the next container");
  t.not(after, before);
  await session.kill();
}

async function countRestarts(cluster: TestCluster): Promise<number> {
  const path = "{.status.containerStatuses[0].restartCount}";
  return Number((await cluster.kubectl(["get", "pod", "web", "-o", `jsonpath=${path}`])).stdout);
}

async function testReceive(t: Test, port: number): Promise<void> {
  const zeros = Buffer.alloc(MIB);
  const expected = createHash("sha256");
  for (let index = 0; index < STREAM_BYTES / MIB; index++) expected.update(zeros);
  const hash = createHash("sha256");
  const began = performance.now();
  await pipeline(connect(port, "127.0.0.1"), hash);
  t.equal(hash.digest("hex"), expected.digest("hex"), "1 GiB from the pod");
  t.comment(`from the pod: ${formatRate(began)}`);
}

/** Sends the data; resolves with what came back once it is whole, or the connection closes. */
async function exchange(port: number, data: Readable, isWhole: (text: string) => boolean): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString();
    if (isWhole(text)) socket.destroy();
  });
  const closed = once(socket, "close");
  socket.on("error", () => undefined);
  await pipeline(data, socket, { end: false }).catch(() => undefined);
  await closed;
  return text;
}
