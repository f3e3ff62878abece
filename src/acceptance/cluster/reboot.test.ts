/** Pods after a reboot of the node, and after the agent was killed, with containerd, API server and kubectl. */
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { type PrivateContainerd, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";
import { AgentProcess } from "./agent-process.ts";
import { type CommandResult, command, findMissingRequirement } from "./cluster.ts";

t.setTimeout(300_000);

const missing = findMissingRequirement();
const forever = "trap 'exit 0' TERM; while :; do sleep 0.1; done";
const TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/** Checkpoints are written a second after a change. */
const CHECKPOINT_MS = 2_500;

function pod(name: string, script: string, spec: object = {}, container: object = {}): object {
  const one = { name: "c", image: "localhost/bb:1", imagePullPolicy: "Never", command: ["sh", "-c", script] };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: { nodeName: "n1", terminationGracePeriodSeconds: 1, ...spec, containers: [{ ...one, ...container }] },
  };
}

/** Simulates a reboot for containerd: kills processes, unmounts, and removes the state below /run, but not the root. */
async function reboot(containerd: PrivateContainerd): Promise<void> {
  const { directory } = containerd;
  await containerd.kill();
  for (const shim of shimsOf(directory)) {
    const children = readFileSync(`/proc/${shim}/task/${shim}/children`, "utf8").trim();
    for (const pid of children === "" ? [] : children.split(" ")) process.kill(Number(pid), "SIGKILL");
    process.kill(shim, "SIGKILL");
  }
  const mounts = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "");
  const below = mounts.filter((path) => path.startsWith(`${directory}/`)).sort((a, b) => b.length - a.length);
  for (const path of below) await command("umount", ["-l", path]);
  rmSync(join(directory, "state"), { recursive: true, force: true });
  await containerd.start();
}

function shimsOf(directory: string): readonly number[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, "utf8");
      return words.includes("containerd-shim") && words.includes(directory) ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

interface PodJson {
  readonly metadata: { readonly uid: string };
  readonly status: {
    readonly phase: string;
    readonly containerStatuses: readonly {
      readonly containerID: string;
      readonly ready: boolean;
      readonly restartCount: number;
      readonly state: Readonly<Record<string, { readonly reason?: string }>>;
    }[];
  };
}

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  await using containerd: PrivateContainerd = await startPrivateContainerd();
  const home = join(containerd.directory, "home");
  mkdirSync(home);
  const kubectl = (node: AgentProcess, args: readonly string[], input = ""): Promise<CommandResult> =>
    command("kubectl", args, { input, env: { ...process.env, KUBECONFIG: node.adminConfig, HOME: home } });
  const apply = async (node: AgentProcess, ...objects: readonly object[]): Promise<void> => {
    const input = objects.map((each) => JSON.stringify(each)).join("\n---\n");
    const { code, stderr } = await kubectl(node, ["apply", "-f", "-"], input);
    if (code !== 0) throw new Error(`Cannot apply: ${stderr}`);
  };
  const show = async (node: AgentProcess, name: string): Promise<PodJson | undefined> => {
    const { code, stdout } = await kubectl(node, ["get", "pod", name, "-o", "json"]);
    return code === 0 ? JSON.parse(stdout) : undefined;
  };
  const ready = (node: AgentProcess, name: string): Promise<PodJson> =>
    until(`${name} to be ready`, async () => {
      const shown = await show(node, name);
      return shown?.status.containerStatuses?.[0]?.ready === true ? shown : undefined;
    });
  const running = async (): Promise<number> => {
    const { stdout } = await command("ctr", ["-a", containerd.socket, "-n", "k8s.io", "tasks", "ls"]);
    return stdout.split("\n").filter((line) => line.includes("RUNNING")).length;
  };
  /** The log of one run of a container. */
  const written = (node: AgentProcess, { metadata }: PodJson, name: string, run: number): string =>
    readFileSync(join(node.directory, `logs/default_${name}_${metadata.uid}/c/${run}.log`), "utf8");
  const cluster = async (name: string): Promise<AgentProcess> => {
    const node = await AgentProcess.create({ containerd, name, tokens: true });
    await node.startServer();
    node.start("cluster");
    await until("the node", async () =>
      / Ready /.test((await kubectl(node, ["get", "nodes"])).stdout) ? true : undefined,
    );
    return node;
  };

  await t.test(
    "svc agent restarts its pods after a reboot without API server, and adopts them afterwards",
    async (t) => {
      await using node = await cluster("reboot");
      const settings = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "words" }, data: { word: "open" } };
      const keys = { apiVersion: "v1", kind: "Secret", metadata: { name: "keys" }, stringData: { password: "sesame" } };
      const web = pod(
        "web",
        `echo "$WORD $(cat /keys/password) $(cat /scratch/was 2>/dev/null)"; echo here > /scratch/was;
       cut -d. -f1 ${TOKEN}; ${forever}`,
        {
          volumes: [
            { name: "keys", secret: { secretName: "keys" } },
            { name: "scratch", emptyDir: { medium: "Memory" } },
          ],
        },
        {
          env: [{ name: "WORD", valueFrom: { configMapKeyRef: { name: "words", key: "word" } } }],
          volumeMounts: [
            { name: "keys", mountPath: "/keys" },
            { name: "scratch", mountPath: "/scratch" },
          ],
        },
      );
      await apply(node, settings, keys, web, pod("plain", forever));
      const before = { web: await ready(node, "web"), plain: await ready(node, "plain") };
      await sleep(CHECKPOINT_MS);
      await node.stopServer();
      await node.stop("SIGKILL");
      await reboot(containerd);
      t.equal(await running(), 0, "nothing runs after the reboot");

      node.start("cluster");
      await until("two sandboxes and two containers to run without the server", async () =>
        (await running()) === 4 ? true : undefined,
      );
      t.match(node.log, "running pods from the checkpoint");
      await node.startServer();
      for (const name of ["web", "plain"] as const) {
        await until(`the status of ${name} at the server`, async () =>
          (await show(node, name))?.status.containerStatuses[0]?.restartCount === 1 ? true : undefined,
        );
        const after = await ready(node, name);
        t.equal(after.metadata.uid, before[name].metadata.uid, `${name} is the same pod`);
        const [container] = after.status.containerStatuses;
        t.equal(container?.restartCount, 1, `${name} was started once again`);
        t.not(container?.containerID, before[name].status.containerStatuses[0]?.containerID);
      }
      const output = written(node, before.web, "web", 1);
      t.match(output, / F open sesame \n.* F eyJ[\w-]+\n$/, "with ConfigMap, Secret and token, and an empty tmpfs");
      const logs = await kubectl(node, ["logs", "web"]);
      t.match(logs.stdout, /^open sesame \neyJ[\w-]+\n$/, `kubectl logs shows the same: ${logs.stderr}`);
      const settled = (await show(node, "web"))?.status.containerStatuses[0]?.containerID;
      await sleep(3_000);
      t.equal(
        (await show(node, "web"))?.status.containerStatuses[0]?.containerID,
        settled,
        "it is not restarted again",
      );
      await kubectl(node, ["delete", "pod", "web", "plain"]);
      await until("all to end", async () => ((await running()) === 0 ? true : undefined));
    },
  );

  await t.test(
    "pods survive a killed svc agent, and the next continues their counts, back-off and probes",
    async (t) => {
      await using node = await cluster("killed");
      const probe = { exec: { command: ["true"] }, periodSeconds: 1 };
      const slow = { exec: { command: ["cat", "/tmp/up"] }, periodSeconds: 1, failureThreshold: 60 };
      await apply(
        node,
        pod("calm", forever, {}, { readinessProbe: probe }),
        pod("failing", "exit 3"),
        pod("started", `echo > /tmp/up; ${forever}`, {}, { startupProbe: slow, readinessProbe: probe }),
      );
      const before = { calm: await ready(node, "calm"), started: await ready(node, "started") };
      const crashes = async (): Promise<number> =>
        (await show(node, "failing"))?.status.containerStatuses[0]?.restartCount ?? 0;
      await until("the failing one to wait", async () => ((await crashes()) >= 2 ? true : undefined));
      const count = await crashes();
      await node.stop("SIGKILL");
      t.ok((await running()) >= 4, "what ran goes on");
      node.start("cluster");
      await until("the next agent", async () => (node.log.split("Registered node").length > 2 ? true : undefined));
      await sleep(3_000);
      for (const name of ["calm", "started"] as const) {
        const [was, is] = [before[name], await ready(node, name)].map(({ status }) => status.containerStatuses[0]);
        t.equal(is?.containerID, was?.containerID, `${name} was not restarted`);
        t.equal(is?.restartCount, 0);
        const { stdout } = await kubectl(node, [
          "get",
          "events",
          "--field-selector",
          `involvedObject.name=${name},reason=Unhealthy`,
        ]);
        t.notMatch(stdout, /Readiness probe failed/);
      }
      t.ok((await crashes()) <= count + 1, "the failing one waits for its time");
      await until("it to be seen waiting", async () =>
        (await show(node, "failing"))?.status.containerStatuses[0]?.state.waiting?.reason === "CrashLoopBackOff"
          ? true
          : undefined,
      );
      await kubectl(node, ["delete", "pod", "--all"]);
      await until("all to end", async () => ((await running()) === 0 ? true : undefined));
    },
  );

  await t.test("svc agent with --exit-on-lock-contention releases its lock to a waiting agent", async (t) => {
    await using node = await AgentProcess.create({ containerd, name: "locked" });
    const lock = join(node.directory, "lock");
    node.start("standalone", `--lock-file=${lock}`, "--exit-on-lock-contention");
    await until("the agent", async () => (node.log.includes("Registered node") ? true : undefined));
    const other = command("flock", ["--timeout=20", lock, "true"]);
    t.equal(await node.ended(), 0);
    t.equal((await other).code, 0);
  });
}
