/** First steps of a user: a pod, with every installed kubectl. */
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement, programs, root, TestCluster } from "./cluster.ts";

const missing = findMissingRequirement();
const hello = readFileSync(join(root, "testdata/examples/hello.yaml"), "utf8");
const settings = join(root, "testdata/examples/settings.yaml");

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("svc up runs pods for every kubectl", async (t) => {
    await using cluster = await TestCluster.create({ program: programs.bundle });
    await cluster.start();
    for (const [i, binary] of kubectlPaths().entries()) {
      const version = await cluster.kubectl(["version", "--client", "-o", "json"], { binary });
      const name = `kubectl ${JSON.parse(version.stdout).clientVersion.gitVersion}`;
      await t.test(name, (t) => testFirstSteps(t, cluster, binary, `hello-${i}`));
    }
    t.equal(await cluster.stop(), 0, "a clean stop");
  });
  t.test("svc up from the sources runs pods", (t) => testProgram(t, programs.sources));
  t.test("svc up from the self-contained executable runs pods", (t) => testProgram(t, programs.binary));
  t.test("svc up mounts ConfigMaps and Secrets into pods", async (t) => {
    await using cluster = await TestCluster.create({ program: programs.bundle });
    await cluster.start("--stop-pods");
    t.equal((await cluster.kubectl(["apply", "-f", settings])).code, 0);
    const log = await until("the settings in the log", async () => {
      const { stdout } = await cluster.kubectl(["logs", "settings"]);
      return stdout.includes("scratch") ? stdout : undefined;
    });
    t.match(log, /^greeting=good morning\nnode=e2e\nred\ngreen\n-r-------- .* \/secret\/password\nscratch\n$/);
    t.equal(await cluster.stop(), 0);
    t.same(await cluster.remains(), [], "no tmpfs mounts of Secrets either");
  });
}

async function testProgram(t: Test, program: readonly string[]): Promise<void> {
  await using cluster = await TestCluster.create({ program });
  await cluster.start("--stop-pods");
  await testFirstSteps(t, cluster, kubectlPaths()[0]!, "hello");
  t.equal((await cluster.kubectl(["apply", "-f", "-"], { input: hello })).code, 0);
  await cluster.kubectl(["wait", "--for=condition=Ready", "pod/hello", "--timeout=60s"]);
  t.equal(await cluster.stop("SIGINT"), 0, "SIGINT ends it cleanly");
  t.same(await cluster.remains(), [], "no remains with --stop-pods");
}

/** The first commands of a new user, with one kubectl and one pod. */
async function testFirstSteps(t: Test, cluster: TestCluster, binary: string, pod: string): Promise<void> {
  const run = async (args: string, input?: string): Promise<string> => {
    const { code, stdout, stderr } = await cluster.kubectl(args.split(" "), { binary, ...(input && { input }) });
    t.equal(code, 0, `kubectl ${args}: ${stderr}`);
    return stdout;
  };
  const manifest = hello.replace("name: hello\n", `name: ${pod}\n`);
  t.equal(await run("apply -f -", manifest), `pod/${pod} created\n`);
  t.match(await run(`wait --for=condition=Ready pod/${pod} --timeout=60s`), "condition met");
  t.equal(await run("apply -f -", manifest), `pod/${pod} unchanged\n`);
  const row = new RegExp(`${pod} +1/1 +Running +0 +\\S+ +10\\.[0-9.]+ +e2e +<none> +<none>`);
  t.match(await run("get pods -o wide"), row);
  t.match(await run("get nodes"), /\ne2e +Ready +\S+ +\S+ +v1\.33\./);
  t.match(await run("get nodes -o wide"), /containerd:\/\//);
  const events = await run(`get events --field-selector involvedObject.name=${pod}`);
  for (const reason of ["Scheduled", "Pulled", "Created", "Started"]) t.match(events, reason);
  t.match(await run(`describe pod ${pod}`), /Status: +Running/);
  t.match(await run(`describe pod ${pod}`), /Successfully assigned/, "describe shows events");
  t.match(await run("describe node e2e"), /Ready +True/);
  await until("a greeting", async () => ((await run(`logs ${pod}`)).includes("hello 1 from") ? true : undefined));
  // With the default data directory, /var/log/containers beside /var/log/pods.
  const linksDirectory = join(cluster.dataDir, "containers");
  const links = readdirSync(linksDirectory).filter((name) => name.startsWith(`${pod}_default_`));
  t.equal(links.length, 1, "a link to the log, for collectors");
  t.match(realpathSync(join(linksDirectory, links[0] ?? "")), /\/pod-logs\/default_.*\/0\.log$/);
  t.match(await followLog(cluster, binary, pod), /hello \d+ from .*\n.*hello \d+ from/, "logs -f prints new lines");
  t.match(await run(`get pod ${pod} -o yaml`), /phase: Running/);
  t.match(await run(`delete pod ${pod}`), `pod "${pod}" deleted`);
  t.notMatch(await run("get pods"), pod);
}

/** The output of `kubectl logs -f` until two more lines arrived. */
function followLog(cluster: TestCluster, binary: string, pod: string): Promise<string> {
  const child = spawn(binary, ["logs", "-f", "--tail=1", pod], { env: cluster.env, timeout: 30_000 });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    if (text.split("\n").length > 3) child.kill();
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", () => resolve(text));
  });
}
