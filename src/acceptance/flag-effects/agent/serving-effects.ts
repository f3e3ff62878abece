/** Effects of the flags for serving and TLS. */
import { type AgentFlagName, createTestAgent } from "../../../testing/agent/flag-harness.ts";
import { blockEventLoop } from "../../../testing/std/block-event-loop.ts";
import { freePort } from "../../../testing/std/free-port.ts";
import { type Effect, get, getPlain, server, servingFlags, withFreePort } from "./support.ts";

const ownPort = await freePort();

export const servingEffects: Partial<Record<AgentFlagName, Effect>> = {
  address: {
    set: () => withFreePort("port", { ...servingFlags, address: "127.0.0.2" }),
    async verify(t, agent) {
      await agent.start();
      t.equal((await get(agent.config.server.port, { host: "127.0.0.2" })).status, 200);
      await t.rejects(get(agent.config.server.port), { code: "ECONNREFUSED" });
    },
  },
  port: {
    set: async () => ({ ...servingFlags, port: String(ownPort) }),
    async verify(t, agent) {
      t.equal((await agent.start()).port, ownPort);
      t.equal((await get(ownPort)).status, 200);
    },
  },
  "enable-server": {
    set: () => withFreePort("port", servingFlags),
    async verify(t, agent) {
      await agent.start();
      t.equal((await get(agent.config.server.port)).status, 200);
      const settings = await withFreePort("port", { ...servingFlags, "enable-server": "false" });
      await using other = await createTestAgent("flag", settings);
      await other.start();
      await t.rejects(get(other.config.server.port), { code: "ECONNREFUSED" });
    },
  },
  "read-only-port": {
    set: async () => ({ ...(await withFreePort("port", servingFlags)), ...(await withFreePort("read-only-port")) }),
    async verify(t, agent) {
      await agent.start();
      t.equal(await getPlain("127.0.0.1", agent.config.server.readOnlyPort, "/pods"), 200);
    },
  },
  "healthz-port": {
    set: () => withFreePort("healthz-port"),
    async verify(t, agent) {
      await agent.start();
      t.equal(await getPlain("127.0.0.1", agent.config.server.healthzPort, "/healthz"), 200);
    },
  },
  "healthz-bind-address": {
    set: () => withFreePort("healthz-port", { "healthz-bind-address": "127.0.0.3" }),
    async verify(t, agent) {
      await agent.start();
      t.equal(await getPlain("127.0.0.3", agent.config.server.healthzPort, "/healthz"), 200);
    },
  },
  "enable-debugging-handlers": {
    set: () => withFreePort("port", { ...servingFlags, "enable-debugging-handlers": "false" }),
    async verify(t, agent) {
      const { port } = await agent.start();
      agent.createPod("web");
      await agent.untilRunning("web");
      const path = "/containerLogs/default/web/c";
      for (const method of ["GET", "POST"])
        t.equal((await get(port, { path, method })).status, 405, "debugging endpoints are disabled for every method");
    },
  },
  "contention-profiling": {
    set: () => withFreePort("port", { ...servingFlags, "contention-profiling": "true" }),
    async verify(t, agent) {
      const { port } = await agent.start();
      await blockEventLoop(100);
      const { status, body } = await get(port, { path: "/debug/pprof/block?debug=1" });
      t.equal(status, 200);
      t.match(body, /event loop late by/);
    },
  },
  "tls-cert-file": {
    set: () => withFreePort("port", servingFlags),
    async verify(t, agent) {
      const { port } = await agent.start();
      const { X509Certificate } = await import("node:crypto");
      t.equal((await get(port)).fingerprint, new X509Certificate(server.cert).fingerprint256);
    },
  },
  "tls-min-version": {
    set: () => withFreePort("port", { ...servingFlags, "tls-min-version": "VersionTLS13" }),
    async verify(t, agent) {
      const { port } = await agent.start();
      t.equal((await get(port)).protocol, "TLSv1.3");
      await t.rejects(get(port, { maxVersion: "TLSv1.2" }));
    },
  },
  "tls-cipher-suites": {
    set: () =>
      withFreePort("port", { ...servingFlags, "tls-cipher-suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" }),
    async verify(t, agent) {
      const { port } = await agent.start();
      const only = { maxVersion: "TLSv1.2" };
      t.equal((await get(port, only)).cipher, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384");
      await t.rejects(get(port, { ...only, ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" }));
    },
  },
};
