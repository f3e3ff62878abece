/** exec, attach, portforward, cp, log and top of @kubernetes/client-node, with svc up and containerd. */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable, Writable } from "node:stream";
import {
  Attach,
  CoreV1Api,
  Cp,
  Exec,
  KubeConfig,
  Log,
  Metrics,
  PortForward,
  topNodes,
  topPods,
  type V1Status,
} from "@kubernetes/client-node";
import t, { type Test } from "tap";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement, programs, TestCluster } from "./cluster.ts";
import { exampleImage } from "./example-image.ts";

const RUN_MS_MAX = 120_000;
const NAMESPACE = "default";
const PORT = 9100;
const INPUT_BYTES = 8 * 2 ** 20;
/** Answers each connection with what it has sent, and prints the lines of its input until one says `end`. */
const SCRIPT = `nc -ll -p ${PORT} -e cat & echo started; line=
while [ "$line" != end ] && read line; do echo got $line; done; kill $!`;

t.setTimeout(RUN_MS_MAX);
const missing = findMissingRequirement();
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("@kubernetes/client-node streams into containers", { timeout: RUN_MS_MAX }, async (t) => {
    const { SVC_PROGRAM: selected = "bundle" } = process.env;
    await using cluster = await TestCluster.create({ program: programs[selected as keyof typeof programs] });
    await cluster.start("--stop-pods");
    const config = new KubeConfig();
    config.loadFromFile(cluster.kubeconfig);
    await createPod(config);
    await testExec(t, config);
    await testAttach(t, config);
    await testPortForward(t, config);
    await testCopy(t, config);
    await testTop(t, config);
    await testLog(t, config);
  });
}

async function createPod(config: KubeConfig): Promise<void> {
  const api = config.makeApiClient(CoreV1Api);
  const container = { name: "c", image: exampleImage, command: ["sh", "-c", SCRIPT], stdin: true };
  const spec = { terminationGracePeriodSeconds: 0, restartPolicy: "Never", containers: [container] };
  await api.createNamespacedPod({ namespace: NAMESPACE, body: { metadata: { name: "p" }, spec } });
  await until("the pod to run", async () => {
    const { status } = await api.readNamespacedPod({ namespace: NAMESPACE, name: "p" });
    return status?.phase === "Running";
  });
}

class Collected extends Writable {
  #chunks: Buffer[] = [];

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  get text(): string {
    return this.bytes.toString();
  }

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.#chunks.push(Buffer.from(chunk));
    done();
  }
}

interface Result {
  readonly status: V1Status;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(
  config: KubeConfig,
  command: readonly string[],
  input: Readable | null = null,
  tty = false,
): Promise<Result> {
  const [stdout, stderr] = [new Collected(), new Collected()];
  const ended = Promise.withResolvers<V1Status>();
  const exec = new Exec(config);
  await exec.exec(NAMESPACE, "p", "c", [...command], stdout, tty ? null : stderr, input, tty, ended.resolve);
  return { status: await ended.promise, stdout: stdout.text, stderr: stderr.text };
}

async function testExec(t: Test, config: KubeConfig): Promise<void> {
  t.match(await run(config, ["sh", "-c", "echo out; echo err >&2"]), {
    status: { status: "Success" },
    stdout: "out\n",
    stderr: "err\n",
  });
  t.match(await run(config, ["sh", "-c", "exit 7"]), {
    status: {
      status: "Failure",
      reason: "NonZeroExitCode",
      details: { causes: [{ reason: "ExitCode", message: "7" }] },
    },
  });
  t.match(await run(config, ["absent"]), { status: { status: "Failure", message: /executable file not found/ } });
  const input = randomBytes(INPUT_BYTES);
  const sum = createHash("sha256").update(input).digest("hex");
  const head = await run(config, ["sh", "-c", `head -c ${INPUT_BYTES} | sha256sum`], Readable.from([input]));
  t.match(head.stdout, sum, "input of 8 MiB");
  t.match(await run(config, ["sha256sum"], Readable.from(["abc"])), {
    status: { status: "Success" },
    stdout: /^ba7816bf/,
  });
  t.match(await run(config, ["sh", "-c", "tty"], new PassThrough(), true), { stdout: /^\/dev\/pts\/\d+\r\n$/ });
}

async function testAttach(t: Test, config: KubeConfig): Promise<void> {
  const [stdout, input] = [new Collected(), new PassThrough()];
  const socket = await new Attach(config).attach(NAMESPACE, "p", "c", stdout, null, input, false);
  await until("the attached process", () => {
    input.write("hello\n");
    return stdout.text.includes("got hello\n");
  });
  t.pass("attach passes input and output");
  socket.close();
}

async function testPortForward(t: Test, config: KubeConfig): Promise<void> {
  const data = randomBytes(2 ** 20);
  const [output, errors, input] = [new Collected(), new Collected(), new PassThrough()];
  const socket = await new PortForward(config).portForward(NAMESPACE, "p", [PORT], output, errors, input);
  input.write(data);
  await until("the echo", () => output.bytes.length >= data.length);
  t.ok(output.bytes.equals(data), "1 MiB to a port and back");
  t.equal(errors.text, "");
  if ("close" in socket) socket.close();
}

async function testCopy(t: Test, config: KubeConfig): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "svc-client-cp-"));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const data = randomBytes(2 ** 20);
  mkdirSync(join(directory, "from/deep"), { recursive: true });
  writeFileSync(join(directory, "from/deep/data"), data);
  symlinkSync("deep/data", join(directory, "from/link"));
  await run(config, ["sh", "-c", "mkdir /tmp/to"]);
  const copy = new Cp(config);
  await copy.cpToPod(NAMESPACE, "p", "c", join(directory, "from"), "/tmp/to");
  const sum = createHash("sha256").update(data).digest("hex");
  await until("the copy in the container", async () => {
    return (await run(config, ["sh", "-c", "sha256sum /tmp/to/link"])).stdout.startsWith(sum);
  });
  await copy.cpFromPod(NAMESPACE, "p", "c", "deep", join(directory, "back"), "/tmp/to");
  const back = await until("the copy from the container", () => {
    try {
      const bytes = readFileSync(join(directory, "back/deep/data"));
      return bytes.length === data.length ? bytes : undefined;
    } catch {
      return undefined;
    }
  });
  t.ok(back.equals(data), "cp both ways");
  t.equal(readlinkSync(join(directory, "from/link")), "deep/data");
}

async function testLog(t: Test, config: KubeConfig): Promise<void> {
  const log = new Log(config);
  const whole = new Collected();
  await log.log(NAMESPACE, "p", "c", whole, { tailLines: 1, timestamps: true });
  await until("the last line", () => /^\d{4}-\S+Z got hello\n$/.test(whole.text));
  const followed = new Collected();
  await log.log(NAMESPACE, "p", "c", followed, { follow: true });
  const input = new PassThrough();
  const socket = await new Attach(config).attach(NAMESPACE, "p", "c", null, null, input, false);
  input.write("more\nend\n");
  await once(followed, "finish");
  t.match(followed.text, /^started\n(.*\n)*got more\ngot end\n$/);
  socket.close();
}

async function testTop(t: Test, config: KubeConfig): Promise<void> {
  const api = config.makeApiClient(CoreV1Api);
  const [pod] = await until("figures of the pod", async () => {
    const pods = await topPods(api, new Metrics(config), NAMESPACE).catch(() => []);
    return pods.some(({ Memory }) => Number(Memory.CurrentUsage) > 0) ? pods : undefined;
  });
  t.match(pod, { Pod: { metadata: { name: "p" } }, Containers: [{ Container: "c" }] });
  t.match(await topNodes(api), [{ Node: { metadata: { name: "e2e" } } }]);
  const { items } = await new Metrics(config).getNodeMetrics();
  t.match(items, [{ metadata: { name: "e2e" }, usage: { cpu: /^\d/, memory: /^\d+Ki$/ } }]);
}
