/** Effects of the flags for container runtime, images and cgroups. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import type { AgentFlagName } from "../../../testing/agent/flag-harness.ts";
import {
  binDir,
  type Call,
  connected,
  type Effect,
  files,
  flexDrivers,
  listening,
  onRuntime,
  providerConfig,
  pulls,
  rotated,
  runsKept,
  says,
} from "./support.ts";

export const runtimeEffects: Partial<Record<AgentFlagName, Effect>> = {
  "enable-controller-attach-detach": {
    set: { "enable-controller-attach-detach": "false" },
    async shows(t, agent) {
      const keys = ["kubernetes", "svc"].map((each) => `volumes.${each}.io/controller-managed-attach-detach`);
      const annotations = Object.fromEntries(keys.map((key) => [key, "true"]));
      agent.api.put("/api/v1/nodes/n1", { kind: "Node", metadata: { name: "n1", annotations } });
      await agent.start();
      const left = (agent.getNode().metadata.annotations ?? {}) as Readonly<Record<string, string>>;
      t.same(
        keys.filter((key) => key in left),
        [],
        "no controller is asked to attach",
      );
    },
  },
  "volume-plugin-dir": {
    set: async () => ({ "volume-plugin-dir": flexDrivers }),
    async shows(t, agent) {
      const answer = `echo "$1" >> ${join(flexDrivers, "calls")}; echo '{"status":"Success","capabilities":{"attach":false}}'`;
      const driver = join(flexDrivers, "example.com~disk", "disk");
      mkdirSync(dirname(driver), { recursive: true });
      writeFileSync(driver, `#!/bin/sh\n${answer}\n`, { mode: 0o755 });
      await agent.start();
      agent.createPod("p", { volumes: [{ name: "v", flexVolume: { driver: "example.com/disk" } }] });
      const calls = () => readFileSync(join(flexDrivers, "calls"), "utf8").split("\n");
      await agent.until("the driver mounts", () => existsSync(join(flexDrivers, "calls")) && calls().includes("mount"));
      t.same(calls().slice(0, 2), ["init", "mount"]);
      rmSync(join(flexDrivers, "calls"));
    },
  },
  "maximum-dead-containers-per-container": {
    set: { "maximum-dead-containers-per-container": "2" },
    async shows(t, agent) {
      t.equal(await runsKept(agent), 3, "two that ended, and the newest");
    },
  },
  "minimum-container-ttl-duration": {
    set: { "minimum-container-ttl-duration": "1h", "maximum-dead-containers-per-container": "0" },
    async shows(t, agent) {
      t.equal(await runsKept(agent), 4);
    },
  },
  "container-runtime-endpoint": {
    set: {},
    async shows(t, agent) {
      await connected(t, agent, agent.config.runtime.endpoint);
    },
  },
  "image-service-endpoint": {
    set: { "image-service-endpoint": `unix://${join(files, "images.sock")}` },
    async shows(t, agent) {
      await connected(t, agent, agent.config.runtime.imageEndpoint);
    },
  },
  "runtime-request-timeout": {
    set: { "runtime-request-timeout": "40ms" },
    async shows(t, agent) {
      const { createCriClient } = await import("../../../agent/runtime/cri-client.ts");
      const { systemClock } = await import("../../../std/time/clock.ts");
      const { endpoint, requestTimeoutMs } = agent.config.runtime;
      const silent = createServer((socket) => void socket.on("error", () => {}).unref());
      await listening(silent, endpoint.slice("unix://".length));
      using cri = createCriClient({ endpoint, requestTimeoutMs, clock: systemClock });
      await t.rejects(cri.runtime.version({}), { code: "DEADLINE_EXCEEDED" });
      silent.close();
    },
  },
  "serialize-image-pulls": {
    set: { "serialize-image-pulls": "false" },
    async shows(t, agent) {
      t.equal(await pulls(agent, 3), 3, "three at once");
    },
  },
  "registry-qps": {
    set: { "registry-qps": "1", "registry-burst": "1", "serialize-image-pulls": "false" },
    async shows(t, agent) {
      t.equal(await pulls(agent, 1), 1);
    },
  },
  "registry-burst": {
    set: { "registry-qps": "1", "registry-burst": "2", "serialize-image-pulls": "false" },
    async shows(t, agent) {
      t.equal(await pulls(agent, 2), 2);
    },
  },
  "image-credential-provider-config": {
    set: { "image-credential-provider-config": providerConfig("plug"), "image-credential-provider-bin-dir": binDir },
    async shows(t, agent) {
      await agent.start();
      agent.createPod("web", { containers: [{ name: "c", image: "r.test/app:1" }] });
      const pulls = () => agent.fake.calls.filter(({ method }) => method === "pullImage");
      await agent.until("the image is pulled", () => pulls().length > 0);
      t.match(pulls()[0]?.request, { auth: { username: "plug" } });
    },
  },
  "image-credential-provider-bin-dir": {
    set: { "image-credential-provider-config": providerConfig("plain"), "image-credential-provider-bin-dir": binDir },
    async shows(t, agent) {
      await t.rejects(agent.start(), /plugin binary .*\/plain is not executable/);
    },
  },
  "cgroup-driver": {
    set: { "cgroup-driver": "systemd" },
    async shows(t, agent) {
      await onRuntime("runPodSandbox", { linux: { cgroupParent: /^kubepods-besteffort-pod.*\.slice$/ } })(t, agent);
      const made = agent.systemd.map(({ method, args }) => `${method} ${args[0]}`);
      for (const name of ["kubepods.slice", "kubepods-besteffort.slice", "kubepods-besteffort-poduid_web.slice"]) {
        t.ok(made.includes(`StartTransientUnit ${name}`), name);
      }
      await says(t, agent, "cpu/kubepods.slice/kubepods-besteffort.slice/cpu.shares", "2");
    },
  },
  "cgroups-per-qos": {
    set: { "cgroups-per-qos": "false", "enforce-node-allocatable": "" },
    async shows(t, agent) {
      await onRuntime("runPodSandbox", { linux: { cgroupParent: "" } })(t, agent);
      t.notOk(existsSync(join(agent.directory, "cgroup/cpu/kubepods")));
    },
  },
  "svclet-cgroups": {
    set: { "svclet-cgroups": "/edge/agent" },
    async shows(t, agent) {
      await agent.start();
      for (const name of ["cpu", "memory"]) {
        await says(t, agent, `${name}/edge/agent/cgroup.procs`, `${process.pid}`);
      }
    },
  },
  "system-cgroups": {
    set: { "system-cgroups": "/system", "cgroup-root": "/edge" },
    async shows(t, agent) {
      writeFileSync(join(agent.directory, "cgroup/cpu/cgroup.procs"), "1\n");
      await agent.start();
      t.ok(existsSync(join(agent.directory, "cgroup/memory/system")));
    },
  },
  "cgroup-root": {
    set: { "cgroup-root": "/edge" },
    shows: onRuntime("runPodSandbox", { linux: { cgroupParent: /^\/edge\/kubepods\// } }),
  },
  "cpu-cfs-quota": {
    set: { "cpu-cfs-quota": "false" },
    async shows(t, agent) {
      await onRuntime("createContainer", {}, { resources: { limits: { cpu: "500m" } } })(t, agent);
      const call = agent.fake.calls.find((each) => each.method === "createContainer")?.request as Call;
      t.equal(
        (call.config?.linux as { resources?: { cpuQuota?: bigint } } | undefined)?.resources?.cpuQuota,
        undefined,
      );
    },
  },
  "cpu-cfs-quota-period": {
    set: { "cpu-cfs-quota-period": "10ms", "feature-gates": "CustomCPUCFSQuotaPeriod=true" },
    shows: onRuntime(
      "createContainer",
      { linux: { resources: { cpuPeriod: 10_000n, cpuQuota: 5_000n } } },
      { resources: { limits: { cpu: "500m" } } },
    ),
  },
  "container-log-max-files": {
    set: { "container-log-max-files": "2", "container-log-max-size": "1Ki" },
    async shows(t, agent) {
      const count = await rotated(agent, 4);
      await agent.until("all but the last is removed", () => count() <= 2);
      t.pass();
    },
  },
  "container-log-max-size": {
    set: { "container-log-max-size": "1Ki" },
    async shows(t, agent) {
      t.ok((await rotated(agent, 1))() > 0, "4 KiB are too much");
    },
  },
  "local-storage-capacity-isolation": {
    set: { "local-storage-capacity-isolation": "false" },
    async shows(t, agent) {
      await agent.start();
      agent.createPod("web", {
        containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent" }],
        volumes: [{ name: "v", emptyDir: { sizeLimit: "1Ki" } }],
      });
      await agent.untilRunning("web");
      const volume = "root/pods/uid-web/volumes/kubernetes.io~empty-dir/v";
      writeFileSync(join(agent.directory, volume, "large"), Buffer.alloc(1024 * 1024));
      const until = agent.clock.now() + 30_000;
      await agent.until("half a minute passed", () => agent.clock.now() >= until);
      const path = "/api/v1/namespaces/default/pods/web";
      t.equal(agent.api.objects.get(path)?.status?.phase, "Running", "nobody measures the volume");
    },
  },
};
