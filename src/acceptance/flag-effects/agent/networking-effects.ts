/** Effects of the flags for networking and DNS. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readOpenFilesMax } from "../../../agent/node/machine/open-files.ts";
import { type AgentFlagName, createTestAgent } from "../../../testing/agent/flag-harness.ts";
import { type Effect, expectRuntimeCall, files } from "./support.ts";

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
