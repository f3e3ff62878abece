/** Effects of the flags for pod sources and synchronization. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { startAgent } from "../../../agent/agent.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import type { AgentFlagName } from "../../../testing/agent/flag-harness.ts";
import { type Effect, files, iptables, manifestRequests, manifestUrl, staticPath, staticPodJson } from "./support.ts";

export const podSourcesEffects: Partial<Record<AgentFlagName, Effect>> = {
  "pod-manifest-path": {
    set: { "pod-manifest-path": staticPath },
    async shows(t, agent) {
      await agent.start();
      await agent.untilRunning("web-n1");
      const annotations = { "kubernetes.io/config.source": "file" };
      t.match(agent.api.objects.get("/api/v1/namespaces/default/pods/web-n1"), { metadata: { annotations } });
    },
  },
  "file-check-frequency": {
    // Nothing tells of a directory whose own directory is made later.
    set: { "pod-manifest-path": join(files, "later/pods"), "file-check-frequency": "3s" },
    async shows(t, agent) {
      await agent.start();
      const path = agent.config.sources.manifestPath;
      rmSync(dirname(path), { recursive: true, force: true });
      await agent.clock.advance(3000);
      mkdirSync(path, { recursive: true });
      writeFileSync(join(path, "web.json"), staticPodJson);
      const began = agent.clock.monotonic();
      await agent.untilRunning("web-n1");
      t.ok(agent.clock.monotonic() - began < 10_000, "long before the 20 seconds that are the default");
    },
  },
  "manifest-url": {
    set: { "manifest-url": manifestUrl },
    async shows(t, agent) {
      await agent.start();
      await agent.untilRunning("web-n1");
      const annotations = { "kubernetes.io/config.source": "http" };
      t.match(agent.api.objects.get("/api/v1/namespaces/default/pods/web-n1"), { metadata: { annotations } });
    },
  },
  "manifest-url-header": {
    set: { "manifest-url": manifestUrl, "manifest-url-header": "x-site:edge-7,x-site:backup" },
    async shows(t, agent) {
      manifestRequests.length = 0;
      await agent.start();
      await agent.untilRunning("web-n1");
      t.equal(manifestRequests[0]?.["x-site"], "edge-7, backup");
    },
  },
  "http-check-frequency": {
    set: { "manifest-url": manifestUrl, "http-check-frequency": "2s" },
    async shows(t, agent) {
      manifestRequests.length = 0;
      await agent.start();
      const began = agent.clock.monotonic();
      await agent.until("it was asked for again", () => manifestRequests.length >= 4);
      t.ok(agent.clock.monotonic() - began < 15_000, "long before three times the 20 seconds that are the default");
    },
  },
  runonce: {
    set: { runonce: "true", "pod-manifest-path": staticPath },
    async shows(t, agent) {
      const { clock, fake } = agent;
      const running = await startAgent(agent.config, { clock, log: silentLogger, iptables, runtime: fake });
      let ended = false;
      const ran = running.ranOnce().finally(() => {
        ended = true;
      });
      await agent.until("all pods run", () => ended);
      await ran;
      t.equal(fake.calls.filter(({ method }) => method === "startContainer").length, 1);
      const closing = running.close();
      ended = false;
      void closing.finally(() => {
        ended = true;
      });
      await agent.until("the agent has stopped", () => ended);
      t.equal(fake.calls.filter(({ method }) => method === "stopContainer").length, 0, "the pod goes on");
    },
  },
  "sync-frequency": {
    set: { "sync-frequency": "7s" },
    async shows(t, agent) {
      t.equal(agent.config.pods.syncMs, 7000);
      await agent.start();
      agent.createPod("web");
      await agent.untilRunning("web");
      t.ok((agent.clock.untilNext ?? 0) <= 7000);
    },
  },
};
