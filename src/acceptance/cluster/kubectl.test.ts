/** Runs the kubectl cases and watches with every installed kubectl. */
import { type ChildProcess, spawn } from "node:child_process";
import t, { type Test } from "tap";
import { kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../testing/std/until.ts";
import { type CommandResult, command, findMissingRequirement, programs, TestCluster } from "./cluster.ts";
import { type KubectlCase, kubectlCases } from "./kubectl-cases.ts";

const RETRY_MS_MAX = 30_000;
/** Concurrent clusters; each runs its share of the kubectls. */
const LANES = 2;
/** For ten kubectls on a busy machine. */
const ALL_MS_MAX = 600_000;

t.setTimeout(ALL_MS_MAX);
const missing = findMissingRequirement();
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.jobs = LANES;
  const releases = await findReleases();
  for (let lane = 0; lane < Math.min(LANES, releases.length); lane++) {
    const share = releases.filter((_, i) => i % LANES === lane);
    const names = share.map(({ version }) => version).join(", ");
    const options = { buffered: true, timeout: ALL_MS_MAX };
    t.test(`kubectl ${names} prints the expected output with svc up`, options, (t) => testOnCluster(t, share));
  }
}

interface Release {
  readonly binary: string;
  /** `v1.33.1` */
  readonly version: string;
}

/**
 * Each release once: the kubectl of the PATH may be among those of SVC_KUBECTLS. With SVC_KUBECTL=ends the oldest and
 * the newest only.
 */
async function findReleases(): Promise<readonly Release[]> {
  const found = new Map<string, Release>();
  for (const binary of kubectlPaths()) {
    const { stdout } = await command(binary, ["version", "--client", "-o", "json"]);
    const { clientVersion } = JSON.parse(stdout) as { readonly clientVersion: { readonly gitVersion: string } };
    const version = clientVersion.gitVersion;
    if (!found.has(version)) found.set(version, { binary, version });
  }
  const releases = [...found.values()];
  if (process.env.SVC_KUBECTL !== "ends") return releases;
  const sorted = releases.sort((a, b) => minorOf(a.version) - minorOf(b.version));
  return sorted.filter((_, i) => i === 0 || i === sorted.length - 1);
}

function minorOf(version: string): number {
  return Number(/^v1\.(\d+)/.exec(version)?.[1]);
}

async function testOnCluster(t: Test, releases: readonly Release[]): Promise<void> {
  await using cluster = await TestCluster.create({ program: programs.bundle });
  await cluster.start("--stop-pods");
  for (const { binary, version } of releases) {
    const minor = minorOf(version);
    const session = { cluster, binary, minor, namespace: `kubectl-${minor}` };
    await t.test(`kubectl ${version} (${binary})`, { timeout: ALL_MS_MAX }, (t) => testCases(t, session));
  }
  t.equal(await cluster.stop(), 0, "a clean stop");
  t.same(await cluster.remains(), [], "no remains");
}

interface Session {
  readonly cluster: TestCluster;
  readonly binary: string;
  readonly minor: number;
  readonly namespace: string;
}

async function testCases(t: Test, session: Session): Promise<void> {
  for (const [theme, cases] of Object.entries(kubectlCases)) {
    for (const one of cases) if ((one.since ?? 0) <= session.minor) await testCase(t, session, one);
    if (theme === "reading") await testWatches(t, session);
  }
}

async function testCase(t: Test, session: Session, one: KubectlCase): Promise<void> {
  const attempt = async (): Promise<string | undefined> => findProblem(await runCase(session, one), session, one);
  let problem = await attempt();
  const deadline = performance.now() + RETRY_MS_MAX;
  while (problem !== undefined && one.retry === true && performance.now() < deadline) problem = await attempt();
  const { run } = one;
  t.ok(problem === undefined, `kubectl ${typeof run === "string" ? run : run.join(" ")}${problem ?? ""}`);
}

function runCase({ cluster, binary, namespace }: Session, { run, input, editor }: KubectlCase): Promise<CommandResult> {
  const words = typeof run === "string" ? run.split(" ") : run;
  const env = editor === undefined ? cluster.env : { ...cluster.env, KUBE_EDITOR: `sed -i '${editor}'` };
  const args = ["--namespace", namespace, ...words].map((word) => word.replaceAll("$NS", namespace));
  const text = input?.replaceAll("$NS", namespace);
  return cluster.kubectl(args, { binary, env, timeoutMs: 90_000, ...(text === undefined ? {} : { input: text }) });
}

/** The difference from the expected output, with the output; undefined without one. */
function findProblem(
  { code, stdout, stderr }: CommandResult,
  { namespace }: Session,
  one: KubectlCase,
): string | undefined {
  const matches = (text: string, wanted: RegExp | "" | undefined): boolean => {
    if (wanted === undefined) return true;
    return wanted === "" ? text === "" : wanted.test(text.replaceAll(namespace, "$NS"));
  };
  const output = matches(stdout, one.out) && matches(stderr, one.err) && matches(stdout + stderr, one.output);
  if (code === (one.code ?? 0) && output) return undefined;
  const texts = [one.out, one.err, one.output].filter((text) => text !== undefined).map((text) => text || "no output");
  const wanted = [`code ${one.code ?? 0}`, ...texts].join(", ");
  return `: wanted ${wanted}; code ${code}, output:\n${stdout}${stderr}`;
}

/** Tests that a watch prints changes in order, and that a followed log prints new lines. */
async function testWatches(t: Test, session: Session): Promise<void> {
  const { cluster, binary, namespace } = session;
  using events = new KubectlProcess(session, ["get", "configmaps", "--watch", "--output-watch-events"]);
  using log = new KubectlProcess(session, ["logs", "--follow", "--tail=1", "hello"]);
  await events.prints(/ADDED +settings /);
  for (const words of ["create cm seen", "label cm seen a=b", "delete cm seen"]) {
    const args = ["--namespace", namespace, ...words.split(" ")];
    t.equal((await cluster.kubectl(args, { binary })).code, 0, `kubectl ${words}`);
  }
  t.match(await events.prints(/DELETED/), /ADDED +seen .*\nMODIFIED +seen .*\nDELETED +seen /, "kubectl get --watch");
  t.match(await log.prints(/(.*\n){3}/), /hello \d+ from hello\nhello \d+ from/, "kubectl logs --follow");
}

/** A kubectl that runs until it is killed. */
class KubectlProcess implements Disposable {
  readonly #child: ChildProcess;
  #text = "";

  constructor({ cluster, binary, namespace }: Session, args: readonly string[]) {
    this.#child = spawn(binary, ["--namespace", namespace, ...args], { env: cluster.env });
    this.#child.stdout?.on("data", (chunk: Buffer) => {
      this.#text += chunk.toString();
    });
  }

  /** Resolves with the output once it matches. */
  prints(wanted: RegExp): Promise<string> {
    const look = async (): Promise<string | undefined> => (wanted.test(this.#text) ? this.#text : undefined);
    return until(`${wanted} from ${this.#child.spawnargs.join(" ")}`, look, { timeoutMs: RETRY_MS_MAX });
  }

  [Symbol.dispose](): void {
    this.#child.kill("SIGKILL");
  }
}
