/** `svc controller-manager` as processes of their own against an API server. */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t, { type Test } from "tap";
import { type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";
import { until } from "../../testing/std/until.ts";

const main = fileURLToPath(new URL("../../main.ts", import.meta.url));
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager";
const DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments";
const PODS = "/api/v1/namespaces/default/pods";

t.setTimeout(120_000);

interface Manager {
  readonly child: ChildProcess;
  readonly ended: Promise<number | NodeJS.Signals | null>;
  readonly errors: () => string;
}

function startManager(t: Pick<Test, "teardown">, kubeconfig: string, ...flags: readonly string[]): Manager {
  const words = [
    `--kubeconfig=${kubeconfig}`,
    "--secure-port=0",
    // Shorter than the defaults, but not so short that a busy machine loses the lease while modules are loaded.
    "--leader-elect-lease-duration=12s",
    "--leader-elect-renew-deadline=10s",
    "--leader-elect-retry-period=500ms",
  ];
  const child = spawn(process.execPath, [main, "controller-manager", ...words, ...flags], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (data) => {
    errors = (errors + String(data)).slice(-10_000);
  });
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.on("exit", (code, signal) => resolve(signal ?? code));
  });
  t.teardown(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return { child, ended, errors: () => errors };
}

function writeConfig(home: string, { port }: ServerProcess): string {
  const file = join(home, "kubeconfig");
  writeFileSync(
    file,
    `apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: { server: "https://127.0.0.1:${port}", insecure-skip-tls-verify: true } }]
users: [{ name: u, user: { token: secret } }]
contexts: [{ name: x, context: { cluster: c, user: u } }]
current-context: x
`,
  );
  return file;
}

async function holderOf(server: ServerProcess): Promise<string> {
  return (await server.send("GET", LEASE)).json.spec?.holderIdentity ?? "";
}

async function createDeployment(server: ServerProcess, name: string): Promise<void> {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "img:1" }] } };
  const spec = { replicas: 2, selector: { matchLabels: labels }, template };
  const answer = await server.send("POST", DEPLOYMENTS, { metadata: { name }, spec });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.json));
}

async function waitForPods(server: ServerProcess, app: string, manager: Manager): Promise<void> {
  await until(
    () => `the pods of ${app} exist; errors: ${manager.errors()}`,
    async () => (await server.send("GET", `${PODS}?labelSelector=app%3D${app}`)).json.items?.length === 2 || undefined,
  );
}

t.test(
  "two controller managers: one works, and the other goes on when it is killed",
  { timeout: 120_000 },
  async (t) => {
    const home = t.testdir();
    await using server = await startServerProcess({ home, store: join(home, "store") });
    const kubeconfig = writeConfig(home, server);
    const first = startManager(t, kubeconfig, "--use-service-account-credentials");
    await until(
      () => `there is a leader; errors: ${first.errors()}`,
      async () => (await holderOf(server)) !== "" || undefined,
    );
    const leader = await holderOf(server);
    const second = startManager(t, kubeconfig, "--controllers=deployment-controller,replicaset");
    await createDeployment(server, "one");
    await waitForPods(server, "one", first);
    t.equal(await holderOf(server), leader, "the other one waits");
    const accounts = (await server.send("GET", "/api/v1/namespaces/kube-system/serviceaccounts")).json.items;
    const names = accounts.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
    t.ok(names.includes("deployment-controller"), "its controllers have accounts");
    first.child.kill("SIGKILL");
    await first.ended;
    await createDeployment(server, "two");
    await waitForPods(server, "two", second);
    t.not(await holderOf(server), leader);
    second.child.kill("SIGTERM");
    t.equal(await second.ended, 0);
    t.equal(await holderOf(server), "", "the lease is released");

    const third = startManager(t, kubeconfig, "--controllers=deployment");
    await until("the third one leads", async () => (await holderOf(server)) !== "" || undefined);
    // A renewal in between is a conflict.
    await until("another one has taken the lease", async () => {
      const { json } = await server.send("GET", LEASE);
      const taken = { ...json, spec: { ...json.spec, holderIdentity: "another" } };
      return (await server.send("PUT", LEASE, taken)).status === 200 || undefined;
    });
    t.equal(await third.ended, 1, "leadership is lost");
    t.match(third.errors(), /leader election lost/);
  },
);

t.test("mistakes of the operator end the program with one line", async (t) => {
  const home = t.testdir();
  const missing = startManager(t, join(home, "missing"));
  t.equal(await missing.ended, 1);
  t.match(missing.errors(), /missing/);
  const unknown = startManager(t, join(home, "missing"), "--controllers=nonsense");
  t.equal(await unknown.ended, 1);
  t.match(unknown.errors(), /there is no controller "nonsense"/);
});
