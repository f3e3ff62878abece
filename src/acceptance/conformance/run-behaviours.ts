/** Run by run.ts in its network namespace: starts a cluster, and prints a line for each behaviour and the sums. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../testing/std/until.ts";
import { programs, root, TestCluster } from "../cluster/cluster.ts";
import { alone, concurrent, sample, waiting } from "./behaviours.ts";
import { readConformanceList } from "./conformance-list.ts";
import { Api, readCredentials } from "./harness/api.ts";
import { type Behaviour, type Behaviours, TestNamespace } from "./harness/behaviour.ts";
import { makeEntryImage } from "./harness/entry-image.ts";

const CONCURRENT_MAX = Number(process.env.SVC_CONFORMANCE_JOBS ?? 4);
const RUN_MS_MAX = 600_000;
const WAIT_MS_MAX = 16 * 60_000;

const words = process.argv.slice(2);
const isSample = words.includes("--sample");
const wanted = words.filter((word) => !word.startsWith("--"));

/** Behaviours of the list only: a misspelt name would count for nothing. */
const known = new Set(Object.values(readConformanceList()).flatMap((behaviours) => Object.keys(behaviours)));
for (const name of [...Object.keys({ ...waiting, ...concurrent, ...alone }), ...sample]) {
  if (!known.has(name)) throw new Error(`The conformance list has no behaviour ${JSON.stringify(name)}`);
}

function select(behaviours: Behaviours): [string, Behaviour][] {
  return Object.entries(behaviours).filter(([name]) => {
    if (isSample && !sample.includes(name)) return false;
    return wanted.length === 0 || wanted.some((word) => name.includes(word));
  });
}

let count = 0;
let failed = 0;

async function show(api: Api, name: string, behaviour: Behaviour, timeoutMs = RUN_MS_MAX): Promise<void> {
  const namespace = `conformance-${++count}-${randomBytes(2).toString("hex")}`;
  const began = performance.now();
  let timer: NodeJS.Timeout | undefined;
  try {
    const labels = { "pod-security.kubernetes.io/enforce": "privileged", conformance: namespace };
    await api.post("/api/v1/namespaces", { metadata: { name: namespace, labels } });
    const account = `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
    await until("the default service account", async () => (await api.send(`GET ${account}`)).status === 200);
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`Not shown within ${timeoutMs} ms`)), timeoutMs);
    });
    await Promise.race([behaviour(new TestNamespace(api, cluster, namespace)), timeout]);
    console.log(`ok ${name} # ${Math.round(performance.now() - began)} ms`);
  } catch (error) {
    failed++;
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    console.log(`not ok ${name}\n${text.replaceAll(/^/gm, "    ")}`);
  } finally {
    clearTimeout(timer);
    await api.send(`DELETE /api/v1/namespaces/${namespace}`);
  }
}

const { SVC_PROGRAM: program = "bundle" } = process.env;
/** The images of the examples, and those that only behaviours use. */
const imageDir = mkdtempSync(join(tmpdir(), "svc-conformance-images-"));
process.on("exit", () => rmSync(imageDir, { recursive: true, force: true }));
symlinkSync(join(root, "dist/images/hello.tar"), join(imageDir, "hello.tar"));
writeFileSync(join(imageDir, "entry.tar"), makeEntryImage());
await using cluster = await TestCluster.create({
  imageDir,
  program: programs[program as keyof typeof programs],
  flags: ["--bind-address=0.0.0.0"],
});
/** The terminal and the parent process both send the signal. */
const interrupt = new AbortController();
interrupt.signal.onabort = () => void cluster[Symbol.asyncDispose]().finally(() => process.exit(1));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupt.abort());
await cluster.start("--stop-pods");
using api = new Api(readCredentials(cluster.kubeconfig));
const waited = Promise.all(select(waiting).map(([name, behaviour]) => show(api, name, behaviour, WAIT_MS_MAX)));
const queue = select(concurrent);
const work = async (): Promise<void> => {
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) await show(api, ...next);
};
await Promise.all(Array.from({ length: CONCURRENT_MAX }, work));
for (const [name, behaviour] of select(alone)) await show(api, name, behaviour);
await waited;
console.log(`${count - failed} shown, ${failed} not shown`);
process.exitCode = failed === 0 && count > 0 ? 0 : 1;
