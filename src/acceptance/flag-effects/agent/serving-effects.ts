/** Effects of the flags for serving and TLS. */
import type { AgentFlagName } from "../../../testing/agent/flag-harness.ts";
import { type Effect, get, getPlain, port, served, server } from "./support.ts";

export const servingEffects: Partial<Record<AgentFlagName, Effect>> = {
  address: {
    set: () => port("port", { ...served, address: "127.0.0.2" }),
    async shows(t, agent) {
      await agent.start();
      t.equal((await get(agent.config.server.port, { host: "127.0.0.2" })).status, 200);
      await t.rejects(get(agent.config.server.port), { code: "ECONNREFUSED" });
    },
  },
  port: {
    set: () => port("port", served),
    async shows(t, agent) {
      t.equal((await agent.start()).port, agent.config.server.port);
      t.equal((await get(agent.config.server.port)).status, 200);
    },
  },
  "enable-server": {
    set: () => port("port", { ...served, "enable-server": "false" }),
    async shows(t, agent) {
      await agent.start();
      await t.rejects(get(agent.config.server.port), { code: "ECONNREFUSED" });
    },
  },
  "read-only-port": {
    set: async () => ({ ...(await port("port", served)), ...(await port("read-only-port")) }),
    async shows(t, agent) {
      await agent.start();
      t.equal(await getPlain("127.0.0.1", agent.config.server.readOnlyPort, "/pods"), 200);
    },
  },
  "healthz-port": {
    set: () => port("healthz-port"),
    async shows(t, agent) {
      await agent.start();
      t.equal(await getPlain("127.0.0.1", agent.config.server.healthzPort, "/healthz"), 200);
    },
  },
  "healthz-bind-address": {
    set: () => port("healthz-port", { "healthz-bind-address": "127.0.0.3" }),
    async shows(t, agent) {
      await agent.start();
      t.equal(await getPlain("127.0.0.3", agent.config.server.healthzPort, "/healthz"), 200);
    },
  },
  "enable-debugging-handlers": {
    set: () => port("port", { ...served, "enable-debugging-handlers": "false" }),
    async shows(t, agent) {
      const { port } = await agent.start();
      agent.createPod("web");
      await agent.untilRunning("web");
      const path = "/containerLogs/default/web/c";
      t.equal((await get(port, { path, method: "POST" })).status, 404, "there is no such route, not even for others");
    },
  },
  "tls-cert-file": {
    set: () => port("port", served),
    async shows(t, agent) {
      const { port } = await agent.start();
      const { X509Certificate } = await import("node:crypto");
      t.equal((await get(port)).fingerprint, new X509Certificate(server.cert).fingerprint256);
    },
  },
  "tls-min-version": {
    set: () => port("port", { ...served, "tls-min-version": "VersionTLS13" }),
    async shows(t, agent) {
      const { port } = await agent.start();
      t.equal((await get(port)).protocol, "TLSv1.3");
      await t.rejects(get(port, { maxVersion: "TLSv1.2" }));
    },
  },
  "tls-cipher-suites": {
    set: () => port("port", { ...served, "tls-cipher-suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" }),
    async shows(t, agent) {
      const { port } = await agent.start();
      const only = { maxVersion: "TLSv1.2" };
      t.equal((await get(port, only)).cipher, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384");
      await t.rejects(get(port, { ...only, ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" }));
    },
  },
};
