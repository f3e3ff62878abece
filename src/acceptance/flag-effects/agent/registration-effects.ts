/** Effects of the flags for identity and registration. */

import { existsSync, readFileSync, rmSync } from "node:fs";
import { createServer as createHttpsServer } from "node:https";
import { createServer } from "node:net";
import { join } from "node:path";
import { startAgent } from "../../../agent/agent.ts";
import { writeKubeconfig } from "../../../client/kubeconfig/kubeconfig.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import type { AgentFlagName } from "../../../testing/agent/flag-harness.ts";
import { freePort } from "../../../testing/std/free-port.ts";
import {
  ca,
  type Effect,
  expectNode,
  files,
  iptables,
  listenOn,
  server,
  servingFlags,
  user,
  withFreePort,
} from "./support.ts";

/** A directory other than those of every agent under test. */
const ownDirectory = join(files, "own");

export const registrationEffects: Partial<Record<AgentFlagName, Effect>> = {
  "hostname-override": { set: { "hostname-override": "Other" }, verify: expectNode({ metadata: { name: "other" } }) },
  "cloud-provider": {
    set: { "cloud-provider": "external" },
    async verify(t, agent) {
      await agent.start();
      const uninitialized = { key: "node.cloudprovider.kubernetes.io/uninitialized", effect: "NoSchedule" };
      const annotations = { "alpha.kubernetes.io/provided-node-ip": "192.0.2.1" };
      t.match(agent.getNode(), { metadata: { annotations }, spec: { taints: [{ ...uninitialized, value: "true" }] } });
      t.match(agent.getNode().status, { addresses: [{ type: "InternalIP", address: "192.0.2.1" }, {}] });
    },
  },
  "provider-id": { set: { "provider-id": "cloud://7" }, verify: expectNode({ spec: { providerID: "cloud://7" } }) },
  "node-ip": {
    set: { "node-ip": "192.0.2.9" },
    verify: expectNode({ status: { addresses: [{ type: "InternalIP", address: "192.0.2.9" }] } }),
  },
  "node-labels": {
    set: { "node-labels": "disk=fast" },
    verify: expectNode({ metadata: { labels: { disk: "fast" } } }),
  },
  "register-schedulable": {
    set: { "register-schedulable": "false" },
    verify: expectNode({ spec: { unschedulable: true } }),
  },
  "register-with-taints": {
    set: { "register-with-taints": "a=b:NoSchedule" },
    verify: expectNode({ spec: { taints: [{ key: "a", value: "b", effect: "NoSchedule" }] } }),
  },
  "register-node": {
    set: { "register-node": "false" },
    async verify(t, agent) {
      agent.api.put("/api/v1/nodes/n1", { kind: "Node", metadata: { name: "n1", labels: { by: "hand" } } });
      await agent.start();
      t.same(agent.getNode().metadata.labels, { by: "hand" }, "the node is unchanged");
      t.match(agent.getNode().status, { nodeInfo: { operatingSystem: "linux" } });
    },
  },
  tunnel: {
    set: async () => {
      const file = join(files, "tunnel.svcconfig");
      const address = `https://127.0.0.1:${await freePort()}`;
      await writeKubeconfig(file, { server: address, cluster: "c", context: "c", user: "u", ca: ca.cert, ...user });
      return { ...(await withFreePort("port", servingFlags)), svcconfig: file, tunnel: "true" };
    },
    async verify(t, agent) {
      const { hostname, port } = new URL(/https:\S+/.exec(readFileSync(agent.config.svcconfig ?? "", "utf8"))![0]);
      const requested: string[] = [];
      const api = createHttpsServer({ cert: server.cert, key: server.key }, (_, response) => {
        response.writeHead(503).end();
      });
      api.on("upgrade", (request, socket) => {
        requested.push(`${request.url} ${request.headers.upgrade}`);
        socket.destroy();
      });
      await using stack = new AsyncDisposableStack();
      await listenOn(api, Number(port), hostname);
      stack.defer(() => {
        api.closeAllConnections();
        api.close();
      });
      const running = await startAgent(agent.config, {
        clock: agent.clock,
        log: silentLogger,
        runtime: agent.fake,
        cgroupHierarchy: agent.directory,
        iptables,
      });
      stack.defer(() => running.close());
      running.ready().catch(() => {});
      await agent.until("a request for a tunnel", () => requested.length > 0);
      t.equal(requested[0], "/api/v1/nodes/n1/tunnel tunnel.svc.io/v1");
    },
  },
  svcconfig: {
    set: async () => {
      const file = join(files, "svcconfig");
      const address = `https://127.0.0.1:${await freePort()}`;
      await writeKubeconfig(file, { server: address, cluster: "c", context: "c", user: "u", ca: ca.cert, ...user });
      return { svcconfig: file };
    },
    async verify(t, agent) {
      const { hostname, port } = new URL(/https:\S+/.exec(readFileSync(agent.config.svcconfig ?? "", "utf8"))![0]);
      let requests = 0;
      const api = createServer((socket) => {
        socket.on("error", () => {}).destroy();
        requests++;
      });
      await using stack = new AsyncDisposableStack();
      await listenOn(api, Number(port), hostname);
      stack.defer(() => new Promise<void>((resolve) => void api.close(() => resolve())));
      const running = await startAgent(agent.config, {
        clock: agent.clock,
        log: silentLogger,
        iptables,
        runtime: agent.fake,
      });
      stack.defer(() => running.close());
      running.ready().catch(() => {});
      await agent.until("a request to the server in the file", () => requests > 0);
      t.pass("the agent connects to the server in the file");
    },
  },
  "cert-dir": {
    set: () => withFreePort("port", { "enable-server": "true", address: "127.0.0.1", "cert-dir": ownDirectory }),
    async verify(t, agent) {
      t.notOk(existsSync(ownDirectory));
      await agent.start();
      t.ok(existsSync(join(ownDirectory, "svclet.crt")), "a certificate was created there");
      rmSync(ownDirectory, { recursive: true });
    },
  },
  "root-dir": {
    set: { "root-dir": ownDirectory },
    async verify(t, agent) {
      t.notOk(existsSync(ownDirectory));
      await agent.start();
      t.ok(existsSync(join(ownDirectory, "pods")));
      await agent.stop();
      rmSync(ownDirectory, { recursive: true });
    },
  },
  "node-status-update-frequency": {
    set: { "node-status-update-frequency": "1s" },
    async verify(t, agent) {
      await agent.start();
      const statusCalls = () => agent.fake.calls.filter(({ method }) => method === "status").length;
      const [before, began] = [statusCalls(), agent.clock.now()];
      await agent.until("five status calls", () => statusCalls() >= before + 5);
      t.ok(agent.clock.now() - began < 40_000, "more often than every ten seconds");
    },
  },
  "node-status-max-images": {
    set: { "node-status-max-images": "1" },
    async verify(t, agent) {
      agent.fake.addImage("other:1", { size: 5000n });
      await agent.start();
      t.match(agent.getNode().status, { images: [{ names: ["other:1"] }] });
      t.equal((agent.getNode().status as { images: unknown[] }).images.length, 1);
    },
  },
};
