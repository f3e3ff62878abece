/** exec, cp, attach, run and port-forward of the oldest and the newest kubectl, with svc up and containerd. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { findPrograms, kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../testing/std/until.ts";
import { command, findMissingRequirement, programs, TestCluster } from "./cluster.ts";
import { exampleImage } from "./example-image.ts";
import { endsOf } from "./kubectl-sessions.ts";

const ALL_MS_MAX = 300_000;
const PARALLEL = 200;
const INPUT_BYTES = 100 * 2 ** 20;

interface Session {
  readonly cluster: TestCluster;
  readonly binary: string;
  /** Of the pods that the kubectl creates. */
  readonly name: string;
}

t.setTimeout(ALL_MS_MAX);
const missing = findMissingRequirement();
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("kubectl streams into containers", { timeout: ALL_MS_MAX }, async (t) => {
    const { SVC_PROGRAM: selected = "bundle" } = process.env;
    await using cluster = await TestCluster.create({ program: programs[selected as keyof typeof programs] });
    await cluster.start("--stop-pods");
    await createPods(cluster);
    for (const [index, { path: binary }] of (await endsOf(kubectlPaths())).entries()) {
      const session = { cluster, binary, name: `k${index}` };
      await t.test(binary, { timeout: ALL_MS_MAX }, async (t) => {
        await testExec(t, session);
        await testCopy(t, session);
        await testAttach(t, session);
        await testPortForward(t, session);
      });
    }
  });
}

async function createPods(cluster: TestCluster): Promise<void> {
  const pod = (name: string, spec: object, container: object = {}): object => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: "c", image: exampleImage, imagePullPolicy: "IfNotPresent", ...container }],
      ...spec,
    },
  });
  const items = [
    pod("web", {}, { command: ["sleep", "3600"] }),
    pod("host", { hostNetwork: true }, { command: ["sleep", "3600"] }),
    pod("shell", {}, { command: ["sh"], stdin: true }),
  ];
  await cluster.kubectl(["apply", "-f", "-"], { input: JSON.stringify({ apiVersion: "v1", kind: "List", items }) });
  await until("the pods to run", async () => {
    const { stdout } = await cluster.kubectl(["get", "pods", "-o", "jsonpath={.items[*].status.phase}"]);
    return stdout === "Running Running Running";
  });
}

async function testExec(t: Test, { cluster, binary }: Session): Promise<void> {
  const run = (...args: readonly string[]) => cluster.kubectl(["exec", ...args], { binary });
  const failed = await run("web", "--", "sh", "-c", "echo out; echo err >&2; exit 7");
  t.same([failed.code, failed.stdout], [7, "out\n"], "exec returns the exit code");
  t.match(failed.stderr, /^err\n.*exit code 7/s);
  t.match((await run("web", "--", "absent")).stderr, /executable file not found/);
  const input = Buffer.alloc(INPUT_BYTES, "0123456789abcdef\n");
  const child = spawn(binary, ["exec", "-i", "web", "--", "sha256sum"], { env: cluster.env, stdio: "pipe" });
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const sum = createHash("sha256").update(input).digest("hex");
  t.equal((await readAll(child)).split(" ")[0], sum, "exec -i passes input and its end");
  if (findPrograms("script").length === 0) return;
  const line = `${binary} exec -it web -- sh -c 'tty; exit 5'`;
  const terminal = await command("script", ["-qec", line, "/dev/null"], { env: cluster.env });
  t.same([terminal.code, /\/dev\/pts\/\d/.test(terminal.stdout)], [5, true], "exec -it has a terminal");
}

async function readAll({ stdout }: ChildProcess): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stdout ?? []) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks).toString();
}

async function testCopy(t: Test, { cluster, binary, name }: Session): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), "svc-cp-"));
  t.teardown(() => rmSync(scratch, { recursive: true }));
  const data = randomBytes(20 * 2 ** 20);
  mkdirSync(join(scratch, "from/deep"), { recursive: true });
  writeFileSync(join(scratch, "from/deep/data"), data);
  symlinkSync("deep/data", join(scratch, "from/link"));
  const copy = async (from: string, to: string): Promise<void> => {
    const { code, stderr } = await cluster.kubectl(["cp", from, to], { binary });
    t.equal(code, 0, code === 0 ? `cp ${from}` : stderr);
  };
  await copy(join(scratch, "from"), `web:/tmp/${name}`);
  const { stdout } = await cluster.kubectl(["exec", "web", "--", "sha256sum", `/tmp/${name}/deep/data`], { binary });
  t.equal(stdout.split(" ")[0], createHash("sha256").update(data).digest("hex"), "the sum in the container");
  t.match((await cluster.kubectl(["exec", "web", "--", "ls", "-l", `/tmp/${name}`])).stdout, /link -> deep\/data/);
  await copy(`web:/tmp/${name}/deep`, join(scratch, "back"));
  t.ok(readFileSync(join(scratch, "back/data")).equals(data), "the data that came back");
  t.equal(readlinkSync(join(scratch, "from/link")), "deep/data");
}

async function testAttach(t: Test, { cluster, binary, name }: Session): Promise<void> {
  const child = spawn(binary, ["attach", "-i", "shell"], { env: cluster.env, stdio: "pipe" });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  await until("the attached shell", () => {
    child.stdin.write(`echo $((6*7))-${name}\n`);
    return output.includes(`42-${name}`) || undefined;
  });
  t.pass("attach reaches the shell");
  child.kill();
  const options = ["--rm", "-i", "--restart=Never", `--image=${exampleImage}`, "--image-pull-policy=IfNotPresent"];
  const ran = await cluster.kubectl(["run", `run-${name}`, ...options, "--", "sh"], {
    binary,
    input: "echo from input\n",
  });
  t.match(ran.stdout, /from input/, "run --rm -i");
}

async function testPortForward(t: Test, { cluster, binary }: Session): Promise<void> {
  const server = createServer((socket) => socket.on("error", () => {}).pipe(socket));
  server.listen({ port: 0, host: "127.0.0.1", backlog: 1024 });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const child = spawn(binary, ["port-forward", "host", `:${port}`], { env: cluster.env, stdio: "pipe" });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  const local = await until("the forwarded port", () => Number(/127\.0\.0\.1:(\d+)/.exec(output)?.[1]) || undefined);
  const echo = (data: Buffer): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect(local, "127.0.0.1");
      const received: Buffer[] = [];
      let length = 0;
      socket.on("error", () => resolve(false));
      socket.on("data", (chunk: Buffer) => {
        received.push(chunk);
        length += chunk.length;
        if (length < data.length) return;
        socket.destroy();
        resolve(Buffer.concat(received).equals(data));
      });
      socket.write(data);
    });
  const results = await Promise.all(
    Array.from({ length: PARALLEL }, (_, index) => echo(Buffer.alloc(5000, `${index}-`))),
  );
  t.equal(results.filter(Boolean).length, PARALLEL, `${PARALLEL} parallel connections`);
  t.ok(await echo(randomBytes(30 * 2 ** 20)), "30 MiB");
  child.kill();
  server.close();
}
