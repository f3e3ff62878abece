/** Rules of the firewall that stop pods' packets, and traces of other distributions of Kubernetes. */
import { type Finding, finding, findingOf } from "./finding.ts";
import type { HostReader } from "./host-reader.ts";

/** The policy of the chain FORWARD; undefined: unknown, or there are no rules. */
export type ForwardPolicy = "ACCEPT" | "DROP" | undefined;

export function checkFirewall(policy: ForwardPolicy): readonly Finding[] {
  if (policy === undefined) return [finding("firewall-forward", "ok", "the chain FORWARD is not in use")];
  const problem = policy === "DROP" ? "the policy of the chain FORWARD is DROP" : undefined;
  return [findingOf("firewall-forward", "the policy of the chain FORWARD is ACCEPT", problem, "warning")];
}

/** Lists rules only when that loads no module into the kernel. */
export async function readForwardPolicy(host: HostReader, signal: AbortSignal): Promise<ForwardPolicy> {
  const names = (await host.readText("/proc/net/ip_tables_names")) ?? "";
  const hasRules = /^filter$/m.test(names) || (await host.stat("/sys/module/nf_tables")) !== undefined;
  const release = ((await host.readText("/proc/sys/kernel/osrelease")) ?? "").trim();
  const hasModules = (await host.stat(`/lib/modules/${release}`)) !== undefined;
  if (!hasRules && hasModules) return undefined;
  const rules = await host.run("iptables", ["-S", "FORWARD"], signal);
  return /^-P FORWARD (ACCEPT|DROP)$/m.exec(rules?.stdout ?? "")?.[1] as ForwardPolicy;
}

interface Distribution {
  readonly name: string;
  /** A process or socket shows that it runs. */
  readonly sockets: readonly string[];
  readonly processes: readonly string[];
  /** Files that its installation leaves. */
  readonly files: readonly string[];
}

const distributions: readonly Distribution[] = [
  {
    name: "k3s or RKE2",
    sockets: ["/run/k3s/containerd/containerd.sock"],
    processes: ["k3s", "k3s-server", "k3s-agent", "rke2"],
    files: ["/var/lib/rancher/k3s", "/var/lib/rancher/rke2", "/etc/rancher"],
  },
  {
    name: "MicroK8s",
    sockets: ["/var/snap/microk8s/common/run/containerd.sock"],
    processes: ["kubelite"],
    files: ["/var/snap/microk8s"],
  },
  { name: "k0s", sockets: ["/run/k0s/containerd.sock"], processes: ["k0s"], files: ["/var/lib/k0s"] },
  {
    name: "Kubernetes (kubeadm)",
    sockets: [],
    processes: ["kubelet", "kube-apiserver", "kube-proxy"],
    files: ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/manifests/kube-apiserver.yaml"],
  },
  { name: "MicroShift", sockets: [], processes: ["microshift"], files: ["/var/lib/microshift"] },
  { name: "KubeEdge", sockets: [], processes: ["edgecore"], files: ["/var/lib/kubeedge"] },
];

export interface DistributionFacts {
  readonly name: string;
  readonly isRunning: boolean;
  readonly traces: readonly string[];
}

export function checkDistributions(found: readonly DistributionFacts[]): readonly Finding[] {
  if (found.length === 0) return [finding("other-distribution", "ok", "none")];
  return found.map(({ name, isRunning, traces }) => {
    const state = isRunning ? "runs" : "has left files";
    return finding("other-distribution", isRunning ? "error" : "warning", `${name} ${state}: ${traces.join(", ")}`);
  });
}

export async function readDistributions(host: HostReader): Promise<readonly DistributionFacts[]> {
  const pids = ((await host.list("/proc")) ?? []).filter((name) => /^\d+$/.test(name));
  const names = new Set(
    (await Promise.all(pids.map((pid) => host.readText(`/proc/${pid}/comm`)))).map((name) => name?.trim() ?? ""),
  );
  const exists = async (paths: readonly string[]): Promise<readonly string[]> => {
    const found = await Promise.all(paths.map((path) => host.stat(path)));
    return paths.filter((_, index) => found[index] !== undefined);
  };
  const facts = await Promise.all(
    distributions.map(async ({ name, sockets, processes, files }) => {
      const running = processes.filter((process) => names.has(process)).map((process) => `process ${process}`);
      const traces = [...running, ...(await exists(sockets)), ...(await exists(files))];
      return { name, isRunning: running.length > 0, traces };
    }),
  );
  return facts.filter(({ traces }) => traces.length > 0);
}
