/** Effects of the flags for container runtime, images and cgroups. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { podUid } from "../../../agent/pods/pod-fields.ts";
import type { AgentFlagName } from "../../../testing/agent/flag-harness.ts";
import {
  binDir,
  type Call,
  countConcurrentPulls,
  countKeptContainers,
  createUnusedImage,
  type Effect,
  expectCgroupFile,
  expectConnection,
  expectRuntimeCall,
  expectUnusedImage,
  files,
  flexDrivers,
  listenOn,
  providerConfig,
  rotateLog,
  UNUSED_IMAGE,
  untilCollection,
  withFreePort,
} from "./support.ts";

export const runtimeEffects: Partial<Record<AgentFlagName, Effect>> = {
  "enable-controller-attach-detach": {
    set: { "enable-controller-attach-detach": "false" },
    async verify(t, agent) {
      const keys = ["kubernetes", "svc"].map((each) => `volumes.${each}.io/controller-managed-attach-detach`);
      const annotations = Object.fromEntries(keys.map((key) => [key, "true"]));
      agent.api.put("/api/v1/nodes/n1", { kind: "Node", metadata: { name: "n1", annotations } });
      await agent.start();
      const left = (agent.getNode().metadata.annotations ?? {}) as Readonly<Record<string, string>>;
      t.same(
        keys.filter((key) => key in left),
        [],
        "no attachment by the controller",
      );
    },
  },
  "volume-plugin-dir": {
    set: async () => ({ "volume-plugin-dir": flexDrivers }),
    async verify(t, agent) {
      const script = `echo "$1" >> ${join(flexDrivers, "calls")}; echo '{"status":"Success","capabilities":{"attach":false}}'`;
      const driver = join(flexDrivers, "example.com~disk", "disk");
      mkdirSync(dirname(driver), { recursive: true });
      writeFileSync(driver, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
      await agent.start();
      agent.createPod("p", { volumes: [{ name: "v", flexVolume: { driver: "example.com/disk" } }] });
      const calls = () => readFileSync(join(flexDrivers, "calls"), "utf8").split("\n");
      await agent.until("the driver mounts", () => existsSync(join(flexDrivers, "calls")) && calls().includes("mount"));
      t.same(calls().slice(0, 2), ["init", "mount"]);
      rmSync(join(flexDrivers, "calls"));
    },
  },
  "volume-stats-agg-period": {
    set: () => withFreePort("read-only-port", { address: "127.0.0.1", "volume-stats-agg-period": "-1s" }),
    async verify(t, agent) {
      await agent.start();
      const pod = agent.createPod("web", { volumes: [{ name: "v", emptyDir: {} }] });
      await agent.untilRunning("web");
      const cgroup = `kubepods/besteffort/pod${podUid(pod)}`;
      mkdirSync(join(agent.directory, "cgroup/cpu", cgroup, "container"), { recursive: true });
      const response = await fetch(`http://127.0.0.1:${agent.config.server.readOnlyPort}/stats/summary`);
      const { pods } = (await response.json()) as { readonly pods: readonly { readonly volume?: unknown }[] };
      t.same(
        pods.map(({ volume }) => volume),
        [undefined],
        "a pod without volumes",
      );
    },
  },
  "image-gc-high-threshold": {
    set: { "image-gc-high-threshold": "0", "image-gc-low-threshold": "0", "minimum-image-ttl-duration": "0s" },
    verify: (t, agent) => expectUnusedImage(t, agent, [6, false]),
  },
  "image-gc-low-threshold": {
    set: { "image-gc-high-threshold": "0", "image-gc-low-threshold": "0", "minimum-image-ttl-duration": "0s" },
    verify: (t, agent) => expectUnusedImage(t, agent, [6, false]),
  },
  "minimum-image-ttl-duration": {
    set: { "image-gc-high-threshold": "0", "image-gc-low-threshold": "0", "minimum-image-ttl-duration": "31m", v: "5" },
    async verify(t, agent) {
      await createUnusedImage(agent);
      const ages = () =>
        [...agent.logged().matchAll(/too young to be removed.* age=(\d+)/g)].map(([, ms]) => Number(ms));
      const DEFAULT_TTL_MS = 120_000;
      // A collection that reads the file system too late on a busy machine proves nothing: the next one is awaited.
      const isPast = await untilCollection(agent, () => ages().some((ms) => ms > DEFAULT_TTL_MS));
      t.ok(isPast && agent.fake.present.has(UNUSED_IMAGE), "a collection keeps the image for longer than by default");
      t.ok(await untilCollection(agent, () => !agent.fake.present.has(UNUSED_IMAGE)), "a later one removes it");
      t.ok(Math.max(...ages()) < 31 * 60_000, "older images are not too young");
    },
  },
  "pod-infra-container-image": {
    set: {
      "pod-infra-container-image": "docker.io/library/unused:1",
      "image-gc-high-threshold": "0",
      "image-gc-low-threshold": "0",
      "minimum-image-ttl-duration": "0s",
    },
    async verify(t, agent) {
      agent.fake.addImage("docker.io/library/other:1");
      await expectUnusedImage(t, agent, [1, true]);
      await agent.until("a collection", () => !agent.fake.present.has("docker.io/library/other:1"));
      t.ok(agent.fake.present.has("docker.io/library/unused:1"));
    },
  },
  "maximum-dead-containers": {
    set: { "maximum-dead-containers": "1", "maximum-dead-containers-per-container": "5" },
    async verify(t, agent) {
      t.equal(await countKeptContainers(agent), 4);
      await agent.clock.advance(60_000);
      await agent.until("the collection", () => agent.fake.containersNamed("c").length === 2);
    },
  },
  "maximum-dead-containers-per-container": {
    set: { "maximum-dead-containers-per-container": "2" },
    async verify(t, agent) {
      t.equal(await countKeptContainers(agent), 3, "two exited containers and the running one");
    },
  },
  "minimum-container-ttl-duration": {
    set: { "minimum-container-ttl-duration": "1h", "maximum-dead-containers-per-container": "0" },
    async verify(t, agent) {
      t.equal(await countKeptContainers(agent), 4);
    },
  },
  "container-runtime-endpoint": {
    set: { "container-runtime-endpoint": `unix://${join(files, "runtime.sock")}` },
    async verify(t, agent) {
      await expectConnection(t, agent, `unix://${join(files, "runtime.sock")}`);
    },
  },
  "image-service-endpoint": {
    set: { "image-service-endpoint": `unix://${join(files, "images.sock")}` },
    async verify(t, agent) {
      await expectConnection(t, agent, `unix://${join(files, "images.sock")}`);
    },
  },
  "runtime-request-timeout": {
    set: { "runtime-request-timeout": "40ms" },
    async verify(t, agent) {
      const { createCriClient } = await import("../../../agent/runtime/cri-client.ts");
      const { systemClock } = await import("../../../std/time/clock.ts");
      const { endpoint, requestTimeoutMs } = agent.config.runtime;
      t.equal(requestTimeoutMs, 40);
      const silent = createServer((socket) => void socket.on("error", () => {}).unref());
      await listenOn(silent, endpoint.slice("unix://".length));
      using cri = createCriClient({ endpoint, requestTimeoutMs, clock: systemClock });
      await t.rejects(cri.runtime.version({}), { code: "DEADLINE_EXCEEDED" });
      silent.close();
    },
  },
  "serialize-image-pulls": {
    set: { "serialize-image-pulls": "false" },
    async verify(t, agent) {
      t.equal(await countConcurrentPulls(agent, 3), 3, "three at once");
    },
  },
  "registry-qps": {
    set: { "registry-qps": "0", "serialize-image-pulls": "false" },
    async verify(t, agent) {
      await agent.start();
      const pulls = () => agent.fake.calls.filter(({ method }) => method === "pullImage").length;
      // All at once, and three times the default burst: the test's time goes on while it waits.
      const count = 30;
      for (let index = 0; index < count; index++) {
        agent.createPod(`p${index}`, { containers: [{ name: "c", image: `r.test/p${index}:1` }] });
      }
      const refused = () => JSON.stringify(agent.api.listBelow("/api/v1/namespaces/default/events")).includes("QPS");
      await agent.until("all pulls, or a refusal", () => pulls() === count || refused());
      t.equal(pulls(), count, "no limit");
    },
  },
  "registry-burst": {
    set: { "registry-qps": "1", "registry-burst": "2", "serialize-image-pulls": "false" },
    async verify(t, agent) {
      t.equal(await countConcurrentPulls(agent, 2), 2);
    },
  },
  "image-credential-provider-config": {
    set: { "image-credential-provider-config": providerConfig("plug"), "image-credential-provider-bin-dir": binDir },
    async verify(t, agent) {
      await agent.start();
      agent.createPod("web", { containers: [{ name: "c", image: "r.test/app:1" }] });
      const pulls = () => agent.fake.calls.filter(({ method }) => method === "pullImage");
      await agent.until("the image is pulled", () => pulls().length > 0);
      t.match(pulls()[0]?.request, { auth: { username: "plug" } });
    },
  },
  "image-credential-provider-bin-dir": {
    set: { "image-credential-provider-config": providerConfig("plain"), "image-credential-provider-bin-dir": binDir },
    async verify(t, agent) {
      await t.rejects(agent.start(), /plugin binary .*\/plain is not executable/);
    },
  },
  "cgroup-driver": {
    set: { "cgroup-driver": "systemd" },
    async verify(t, agent) {
      await expectRuntimeCall("runPodSandbox", { linux: { cgroupParent: /^kubepods-besteffort-pod.*\.slice$/ } })(
        t,
        agent,
      );
      const created = agent.systemd.map(({ method, args }) => `${method} ${args[0]}`);
      for (const name of ["kubepods.slice", "kubepods-besteffort.slice", "kubepods-besteffort-poduid_web.slice"]) {
        t.ok(created.includes(`StartTransientUnit ${name}`), name);
      }
      await expectCgroupFile(t, agent, "cpu/kubepods.slice/kubepods-besteffort.slice/cpu.shares", "2");
    },
  },
  "cgroups-per-qos": {
    set: { "cgroups-per-qos": "false", "enforce-node-allocatable": "" },
    async verify(t, agent) {
      await expectRuntimeCall("runPodSandbox", { linux: { cgroupParent: "" } })(t, agent);
      t.notOk(existsSync(join(agent.directory, "cgroup/cpu/kubepods")));
    },
  },
  "runtime-cgroups": {
    set: () => withFreePort("read-only-port", { address: "127.0.0.1", "runtime-cgroups": "/edge/runtime" }),
    async verify(t, agent) {
      await agent.start();
      const group = join(agent.directory, "cgroup/memory/edge/runtime");
      mkdirSync(group, { recursive: true });
      writeFileSync(join(group, "memory.usage_in_bytes"), "7000\n");
      writeFileSync(join(group, "memory.stat"), "total_rss 5000\n");
      const response = await fetch(`http://127.0.0.1:${agent.config.server.readOnlyPort}/stats/summary`);
      const { node } = (await response.json()) as { readonly node: { readonly systemContainers: readonly object[] } };
      t.match(
        node.systemContainers.filter((each) => "name" in each && each.name === "runtime"),
        [{ memory: { usageBytes: 7000, rssBytes: 5000 } }],
      );
    },
  },
  "svclet-cgroups": {
    set: { "svclet-cgroups": "/edge/agent" },
    async verify(t, agent) {
      await agent.start();
      for (const name of ["cpu", "memory"]) {
        await expectCgroupFile(t, agent, `${name}/edge/agent/cgroup.procs`, `${process.pid}`);
      }
    },
  },
  "system-cgroups": {
    set: { "system-cgroups": "/system", "cgroup-root": "/edge" },
    async verify(t, agent) {
      writeFileSync(join(agent.directory, "cgroup/cpu/cgroup.procs"), "1\n");
      await agent.start();
      t.ok(existsSync(join(agent.directory, "cgroup/memory/system")));
    },
  },
  "cgroup-root": {
    set: { "cgroup-root": "/edge" },
    verify: expectRuntimeCall("runPodSandbox", { linux: { cgroupParent: /^\/edge\/kubepods\// } }),
  },
  "cpu-cfs-quota": {
    set: { "cpu-cfs-quota": "false" },
    async verify(t, agent) {
      await expectRuntimeCall("createContainer", {}, { resources: { limits: { cpu: "500m" } } })(t, agent);
      const call = agent.fake.calls.find((each) => each.method === "createContainer")?.request as Call;
      t.equal(
        (call.config?.linux as { resources?: { cpuQuota?: bigint } } | undefined)?.resources?.cpuQuota,
        undefined,
      );
    },
  },
  "cpu-cfs-quota-period": {
    set: { "cpu-cfs-quota-period": "10ms", "feature-gates": "CustomCPUCFSQuotaPeriod=true" },
    verify: expectRuntimeCall(
      "createContainer",
      { linux: { resources: { cpuPeriod: 10_000n, cpuQuota: 5_000n } } },
      { resources: { limits: { cpu: "500m" } } },
    ),
  },
  "container-log-max-files": {
    set: { "container-log-max-files": "2", "container-log-max-size": "1Ki" },
    async verify(t, agent) {
      const count = await rotateLog(agent, 4);
      await agent.until("all but the last is removed", () => count() <= 2);
      t.pass();
    },
  },
  "container-log-max-size": {
    set: { "container-log-max-size": "1Ki" },
    async verify(t, agent) {
      t.ok((await rotateLog(agent, 1))() > 0, "4 KiB exceed the maximum");
    },
  },
  "local-storage-capacity-isolation": {
    set: { "local-storage-capacity-isolation": "false" },
    async verify(t, agent) {
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
      t.equal(agent.api.objects.get(path)?.status?.phase, "Running", "the volume is not measured");
    },
  },
};
