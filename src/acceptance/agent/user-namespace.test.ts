/** The agent in a user namespace, which forbids what the gate SvcletInUserNamespace makes kubelet ignore. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { findMissing, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { freePort } from "../../testing/std/free-port.ts";
import { LoggedProcess } from "../../testing/std/logged-process.ts";
import { until } from "../../testing/std/until.ts";

const main = new URL("../../main.ts", import.meta.url).pathname;
const missing = await findMissing();

if (missing.length > 0) {
  console.log(`# no container runtime here (missing: ${missing.join(", ")}): left out`);
} else {
  await using containerd = await startPrivateContainerd();
  for (const gate of ["false", "true"]) {
    await t.test(`the agent runs a pod in a user namespace with SvcletInUserNamespace=${gate}`, async (t) => {
      const directory = join(containerd.directory, `agent-${gate}`);
      const manifests = join(directory, "manifests");
      mkdirSync(manifests, { recursive: true });
      const containers = [{ name: "c", image: containerd.image }];
      const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: `p-${gate}` }, spec: { containers } };
      writeFileSync(join(manifests, "pod.json"), JSON.stringify(pod));
      const [port, readOnlyPort] = [await freePort(), await freePort()];
      const config = {
        apiVersion: "svclet.config.svc.io/v1beta1",
        kind: "SvcletConfiguration",
        podLogsDir: join(directory, "logs"),
        staticPodPath: manifests,
        authentication: { webhook: { enabled: false } },
        authorization: { mode: "AlwaysAllow" },
        containerRuntimeEndpoint: containerd.endpoint,
        cgroupsPerQOS: false,
        enforceNodeAllocatable: [],
        failCgroupV1: false,
        failSwapOn: false,
        healthzPort: 0,
        port,
        readOnlyPort,
        featureGates: { SvcletInUserNamespace: gate === "true" },
      };
      const file = join(directory, "config.json");
      writeFileSync(file, JSON.stringify(config));
      const argv = ["agent", `--root-dir=${join(directory, "root")}`, `--config=${file}`, "--network-policy=false"];
      const unshare = ["unshare", "--user", "--map-root-user", "--mount"];
      const logFile = join(directory, "log");
      await using agent = new LoggedProcess([...unshare, process.execPath, main, ...argv], { logFile });
      const phase = async (): Promise<unknown> => {
        const response = await fetch(`http://127.0.0.1:${readOnlyPort}/pods`).catch(() => undefined);
        const list = response && ((await response.json()) as { items: { status?: { phase?: string } }[] | null });
        return list?.items?.[0]?.status?.phase;
      };
      await until("the pod runs", async () => !agent.isRunning || (await phase()) === "Running");
      t.equal(await phase(), "Running", agent.isRunning ? "the pod runs" : agent.log);
      for (const what of [/the agent's own OOM score/, /the kernel's log/]) t.match(agent.log, what);
      t.equal(await agent.stop("SIGTERM"), 0);
    });
  }
}
