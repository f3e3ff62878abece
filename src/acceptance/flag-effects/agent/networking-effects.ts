/** Effects of the flags for networking and DNS. */
import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readOpenFilesMax } from "../../../agent/node/machine/open-files.ts";
import { type AgentFlagName, createTestAgent, type TestAgent } from "../../../testing/agent/flag-harness.ts";
import { type Effect, expectRuntimeCall, files } from "./support.ts";

/** The addresses of a name, from the agent's DNS server. */
async function lookUp(agent: TestAgent, name: string, tries = 50): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: 5000, tries: 1 });
  resolver.setServers([`127.0.0.1:${agent.dnsPort}`]);
  for (let attempt = 1; ; attempt++) {
    try {
      return await resolver.resolve4(name);
    } catch (error) {
      // The agent has not listed the services yet.
      if (attempt >= tries) throw error;
      await agent.clock.advance(10);
    }
  }
}

/** Starts a DNS server that has one address for every name; resolves with its port. */
async function startDnsServerOf(address: string): Promise<number> {
  const socket = createSocket("udp4").unref();
  socket.on("message", (query, client) => {
    // Without the OPT record, which has 11 bytes.
    const question = query.subarray(12, query.length - 11);
    const header = Buffer.from([query[0]!, query[1]!, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    const answer = Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split(".").map(Number)]);
    socket.send(Buffer.concat([header, question, answer]), client.port, client.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return socket.address().port;
}

export const networkingEffects: Partial<Record<AgentFlagName, Effect>> = {
  "cluster-dns": {
    set: { "cluster-dns": "192.0.2.53" },
    verify: expectRuntimeCall(
      "runPodSandbox",
      { dnsConfig: { servers: ["192.0.2.53"] } },
      {},
      { dnsPolicy: "ClusterFirst" },
    ),
  },
  "cluster-domain": {
    set: { "cluster-dns": "192.0.2.53", "cluster-domain": "corp.example" },
    verify: expectRuntimeCall(
      "runPodSandbox",
      { dnsConfig: { searches: ["default.svc.corp.example", "svc.corp.example", "corp.example"] } },
      {},
      { dnsPolicy: "ClusterFirst" },
    ),
  },
  "service-proxy": {
    set: { "service-proxy": "true" },
    verify: async (t, agent) => {
      await agent.start();
      await agent.until("the rules of services", () => agent.nft.length > 0);
      t.match(agent.nft[0], "table ip svc-proxy {");
    },
  },
  "cluster-cidr": {
    set: { "service-proxy": "true", "cluster-cidr": "10.244.0.0/16" },
    verify: async (t, agent) => {
      await agent.start();
      await agent.until("the rules of services", () => agent.nft.length > 0);
      t.match(agent.nft[0], "elements = { 10.244.0.0/16 }");
    },
  },
  "pod-network": {
    set: { "pod-network": "auto", "cluster-cidr": "10.244.0.0/16" },
    async verify(t, agent) {
      const put = (name: string, podCidr: string, address: string): void => {
        const own = agent.api.objects.get(`/api/v1/nodes/${name}`);
        agent.api.put(`/api/v1/nodes/${name}`, {
          ...own,
          kind: "Node",
          metadata: { ...own?.metadata, name },
          spec: { podCIDR: podCidr, podCIDRs: [podCidr] },
          status: { ...own?.status, addresses: [{ type: "InternalIP", address }] },
        });
      };
      await agent.start();
      put("n1", "10.244.0.0/24", "192.0.2.1");
      put("n2", "10.244.1.0/24", "192.0.2.2");
      const route = "route replace 10.244.1.0/24 via 192.0.2.2 dev eth0 proto 84 metric ";
      await agent.until("a route to the other node", () => agent.network.some((line) => line.startsWith(route)));
      t.match(readFileSync(join(agent.directory, "cni/10-svc.conflist"), "utf8"), '"subnet": "10.244.0.0/24"');
      t.ok(agent.nft.some((text) => text.includes("table ip svc-pod-network")));
      await agent.stop();
      t.ok(
        agent.network.some((line) => line.startsWith("link delete svc-")),
        "removed, since there are no pods",
      );
    },
  },
  "hairpin-mode": {
    set: { "pod-network": "auto", "cluster-cidr": "10.244.0.0/16", "hairpin-mode": "none" },
    async verify(t, agent) {
      await agent.start();
      const node = agent.api.objects.get("/api/v1/nodes/n1");
      agent.api.put("/api/v1/nodes/n1", {
        ...node,
        kind: "Node",
        metadata: { ...node?.metadata, name: "n1" },
        spec: { podCIDR: "10.244.0.0/24", podCIDRs: ["10.244.0.0/24"] },
      });
      const file = join(agent.directory, "cni/10-svc.conflist");
      await agent.until("the CNI configuration", () => existsSync(file));
      t.match(readFileSync(file, "utf8"), '"hairpinMode": false');
    },
  },
  "network-policy": {
    set: { "network-policy": "true" },
    async verify(t, agent) {
      agent.api.put("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/deny", {
        kind: "NetworkPolicy",
        metadata: { namespace: "default", name: "deny" },
        spec: { podSelector: {}, policyTypes: ["Ingress"] },
      });
      await agent.start();
      agent.createPod("web");
      await agent.untilRunning("web");
      t.ok(
        agent.nft.some((text) => / ingress \{ [\d.]+ : goto ingress-/.test(text)),
        "the pod is closed",
      );
    },
  },
  "serve-dns": {
    set: { "serve-dns": "true", "cluster-dns": "127.0.0.1", "cluster-domain": "corp.example" },
    async verify(t, agent) {
      agent.api.put("/api/v1/namespaces/default/services/web", {
        kind: "Service",
        metadata: { namespace: "default", name: "web" },
        spec: { clusterIPs: ["10.96.0.7"] },
      });
      await agent.start();
      t.same(await lookUp(agent, "web.default.svc.corp.example"), ["10.96.0.7"]);
    },
  },
  "dns-forward": {
    set: {
      "serve-dns": "true",
      "cluster-dns": "127.0.0.1",
      "cluster-domain": "cluster.local",
      "dns-forward": `127.0.0.1:1,corp.example=127.0.0.1:${await startDnsServerOf("192.0.2.7")}`,
    },
    async verify(t, agent) {
      await agent.start();
      t.same(await lookUp(agent, "www.corp.example"), ["192.0.2.7"]);
      await t.rejects(lookUp(agent, "www.example", 1), { code: "ESERVFAIL" });
    },
  },
  "resolv-conf": {
    set: { "resolv-conf": join(files, "resolv.conf") },
    verify: expectRuntimeCall(
      "runPodSandbox",
      { dnsConfig: { servers: ["203.0.113.53"] } },
      {},
      { dnsPolicy: "Default" },
    ),
  },
  "allowed-unsafe-sysctls": {
    set: { "allowed-unsafe-sysctls": "kernel.msg*" },
    verify: expectRuntimeCall(
      "runPodSandbox",
      { linux: { sysctls: { "kernel.msgmax": "1" } } },
      {},
      { securityContext: { sysctls: [{ name: "kernel.msgmax", value: "1" }] } },
    ),
  },
  "seccomp-default": {
    set: { "seccomp-default": "true" },
    verify: expectRuntimeCall("createContainer", {
      linux: { securityContext: { seccomp: { profileType: "RuntimeDefault" } } },
    }),
  },
  "pod-cidr": {
    // Without an API server, whose Node object has the range otherwise.
    set: { "pod-cidr": "10.9.0.0/24", runonce: "true" },
    async verify(t, agent) {
      await agent.start();
      const find = () => agent.fake.calls.find(({ method }) => method === "updateRuntimeConfig");
      await agent.until("the runtime has the range", () => find() !== undefined);
      const update = find()?.request;
      t.match(update, { runtimeConfig: { networkConfig: { podCidr: "10.9.0.0/24" } } });
    },
  },
  "make-iptables-util-chains": {
    set: { "make-iptables-util-chains": "false" },
    async verify(t, agent) {
      await agent.start();
      t.equal(agent.iptables.size, 0);
      await using other = await createTestAgent("flag", {});
      await other.start();
      await other.until("the chains of the other agent", () =>
        other.iptables.has("ip6tables filter KUBE-KUBELET-CANARY"),
      );
    },
  },
  "max-open-files": {
    set: { "max-open-files": "9999" },
    async verify(t, agent) {
      await agent.start();
      t.equal((await readOpenFilesMax()).soft, 9999);
    },
  },
  "oom-score-adj": {
    set: { "oom-score-adj": "17" },
    async verify(t, agent) {
      await agent.start();
      t.equal(readFileSync("/proc/self/oom_score_adj", "utf8").trim(), "17");
    },
  },
};
