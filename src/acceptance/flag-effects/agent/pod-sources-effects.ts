/** Effects of the flags for pod sources and synchronization. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { startAgent } from "../../../agent/agent.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import type { AgentFlagName } from "../../../testing/agent/flag-harness.ts";
import { type Effect, files, iptables, manifestRequests, manifestUrl, staticPath, staticPodJson } from "./support.ts";

export const podSourcesEffects: Partial<Record<AgentFlagName, Effect>> = {
  "pod-manifest-path": {
    set: { "pod-manifest-path": staticPath },
    async verify(t, agent) {
      await agent.start();
      await agent.untilRunning("web-n1");
      const annotations = { "kubernetes.io/config.source": "file" };
      t.match(agent.api.objects.get("/api/v1/namespaces/default/pods/web-n1"), { metadata: { annotations } });
    },
  },
  "file-check-frequency": {
    // fs.watch() does not report a directory whose parent is created later.
    set: { "pod-manifest-path": join(files, "later/pods"), "file-check-frequency": "3s" },
    async verify(t, agent) {
      await agent.start();
      const path = agent.config.sources.manifestPath;
      rmSync(dirname(path), { recursive: true, force: true });
      await agent.clock.advance(3000);
      mkdirSync(path, { recursive: true });
      writeFileSync(join(path, "web.json"), staticPodJson);
      const began = agent.clock.monotonic();
      await agent.untilRunning("web-n1");
      t.ok(agent.clock.monotonic() - began < 10_000, "before the default of 20 seconds");
    },
  },
  "manifest-url": {
    set: { "manifest-url": manifestUrl },
    async verify(t, agent) {
      await agent.start();
      await agent.untilRunning("web-n1");
      const annotations = { "kubernetes.io/config.source": "http" };
      t.match(agent.api.objects.get("/api/v1/namespaces/default/pods/web-n1"), { metadata: { annotations } });
    },
  },
  "manifest-url-header": {
    set: { "manifest-url": manifestUrl, "manifest-url-header": "x-site:edge-7,x-site:backup" },
    async verify(t, agent) {
      manifestRequests.length = 0;
      await agent.start();
      await agent.untilRunning("web-n1");
      t.equal(manifestRequests[0]?.["x-site"], "edge-7, backup");
    },
  },
  "http-check-frequency": {
    set: { "manifest-url": manifestUrl, "http-check-frequency": "2s" },
    async verify(t, agent) {
      manifestRequests.length = 0;
      await agent.start();
      const began = agent.clock.monotonic();
      await agent.until("further requests", () => manifestRequests.length >= 4);
      t.ok(agent.clock.monotonic() - began < 15_000, "before three default periods of 20 seconds");
    },
  },
  runonce: {
    set: { runonce: "true", "pod-manifest-path": staticPath },
    async verify(t, agent) {
      const { clock, fake } = agent;
      const running = await startAgent(agent.config, { clock, log: silentLogger, iptables, runtime: fake });
      const untilSettled = async (what: string, promise: Promise<void>): Promise<void> => {
        let isSettled = false;
        const settled = promise.finally(() => {
          isSettled = true;
        });
        settled.catch(() => undefined);
        await agent.until(what, () => isSettled);
        await settled;
      };
      try {
        await untilSettled("all pods run", running.ranOnce());
        t.equal(fake.calls.filter(({ method }) => method === "startContainer").length, 1);
      } finally {
        await untilSettled("the agent has stopped", running.close());
      }
      t.equal(fake.calls.filter(({ method }) => method === "stopContainer").length, 0, "the pod keeps running");
    },
  },
  "sync-frequency": {
    set: { "sync-frequency": "7s" },
    async verify(t, agent) {
      await agent.start();
      // Each sync removes the directories of pods that do not exist.
      const orphan = join(agent.directory, "root", "pods", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6");
      await agent.clock.advance(8000);
      mkdirSync(orphan, { recursive: true });
      const began = agent.clock.monotonic();
      await agent.until("the directory is removed", () => !existsSync(orphan));
      t.ok(agent.clock.monotonic() - began <= 20_000, "earlier than by the usual 60 s");
    },
  },
};
