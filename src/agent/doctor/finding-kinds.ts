/** Every finding of `svc agent doctor` and `svc doctor`: what it means, and what to do about it. */

interface FindingKind {
  readonly area: string;
  /** What happens while it lasts. */
  readonly meaning: string;
  readonly remedy: string;
}

/** In the order of the output. */
export const findingKinds = {
  "check-failed": {
    area: "doctor",
    meaning: "A check could not be made; its other findings are missing.",
    remedy: "Fix what the reason names, and run doctor again as root.",
  },
  configuration: {
    area: "configuration",
    meaning: "The start refuses the settings, or prints the warnings.",
    remedy: "Change the settings as the text says.",
  },
  "machine-user": {
    area: "machine",
    meaning: "Without root, mounts, control groups and network of pods fail; doctor itself cannot read some facts.",
    remedy: "Run it as root: sudo.",
  },
  "machine-memory": {
    area: "machine",
    meaning: "Containers and the runtime are likely to be killed for lack of memory.",
    remedy: "Give the machine more memory, or run fewer pods and set memory limits.",
  },
  "machine-cpus": {
    area: "machine",
    meaning: "No CPU time is left for pods, or for the agent beside them.",
    remedy: "Give the machine more CPUs, or lower --system-reserved and --svc-reserved.",
  },
  swap: {
    area: "machine",
    meaning: "Memory that pods request may be swapped out; with --fail-swap-on the agent does not start.",
    remedy: "Run swapoff -a and remove the swap from /etc/fstab, or set --fail-swap-on=false.",
  },
  "node-name": {
    area: "machine",
    meaning: "The API server refuses a node of this name.",
    remedy:
      "Set a host name of lower-case letters, digits, dots and dashes, or --hostname-override (svc up: --node-name).",
  },
  "node-name-unique": {
    area: "machine",
    meaning: "Two machines report as one node: each overwrites the status and the pods of the other.",
    remedy: "Give each machine a name of its own. After a reinstallation, delete the Node object once.",
  },
  "node-ip": {
    area: "machine",
    meaning: "Other machines, and the API server for logs and exec, cannot reach the node.",
    remedy: "Set --node-ip to an address of this machine, or configure its network.",
  },
  "kernel-version": {
    area: "kernel",
    meaning: "Container runtimes and network plugins are not tested with a kernel this old.",
    remedy: "Install kernel 4.19 or newer.",
  },
  "kernel-overlayfs": {
    area: "kernel",
    meaning: "Each container gets a copy of its image, which is slow and needs much disk.",
    remedy: "Load the module (modprobe overlay), or use a kernel with CONFIG_OVERLAY_FS.",
  },
  "kernel-bridge": {
    area: "kernel",
    meaning: "The bridge plugin of CNI cannot connect pods: they stay in ContainerCreating.",
    remedy: "Load the modules (modprobe bridge veth), or use a kernel with CONFIG_BRIDGE and CONFIG_VETH.",
  },
  "kernel-br-netfilter": {
    area: "kernel",
    meaning: "Traffic between pods of one node bypasses iptables: service proxies and network policies miss it.",
    remedy: "modprobe br_netfilter && sysctl -w net.bridge.bridge-nf-call-iptables=1 (and in /etc/sysctl.d).",
  },
  "kernel-ip-forward": {
    area: "kernel",
    meaning: "Pods reach nothing outside of this machine. CNI's bridge plugin turns it on with the first pod.",
    remedy: "sysctl -w net.ipv4.ip_forward=1 (and in /etc/sysctl.d).",
  },
  "kernel-iptables": {
    area: "kernel",
    meaning: "Pods reach only this machine, and host ports do not work.",
    remedy: "Install iptables, and use a kernel with CONFIG_NF_TABLES or CONFIG_IP_NF_IPTABLES.",
  },
  "kernel-nftables": {
    area: "kernel",
    meaning: "Addresses of services lead nowhere on this node; svc agent --service-proxy does not start.",
    remedy: "Install nft (Debian: nftables), and use a kernel with CONFIG_NF_TABLES; or set --service-proxy=false.",
  },
  "kernel-pod-network": {
    area: "kernel",
    meaning:
      "Pods do not reach those of other nodes, or not those in other networks; svc agent --pod-network needs ip.",
    remedy: "Install ip and bridge (Debian: iproute2), and use a kernel with CONFIG_VXLAN; or set --pod-network=none.",
  },
  "kernel-user-namespaces": {
    area: "kernel",
    meaning: "Pods with hostUsers: false do not start.",
    remedy: "sysctl -w user.max_user_namespaces=15000, or use a kernel with CONFIG_USER_NS.",
  },
  "kernel-seccomp": {
    area: "kernel",
    meaning: "Pods with a seccomp profile, and with --seccomp-default all pods, do not start.",
    remedy: "Use a kernel with CONFIG_SECCOMP_FILTER.",
  },
  "kernel-parameters": {
    area: "kernel",
    meaning: "With --protect-kernel-defaults the agent does not start.",
    remedy: "Set the parameters to the expected values with sysctl.",
  },
  "cgroup-version": {
    area: "cgroups",
    meaning: "cgroup v1 is in maintenance mode. Without control groups, pods have no limits and do not start.",
    remedy:
      "Boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1). Until then svc agent needs --fail-cgroupv1=false.",
  },
  "cgroup-controllers": {
    area: "cgroups",
    meaning: "The limits of the missing controllers are not enforced, and the runtime may refuse containers.",
    remedy: "Enable them at boot: on Raspberry Pi, cgroup_enable=memory cgroup_memory=1 in cmdline.txt.",
  },
  "cgroup-driver": {
    area: "cgroups",
    meaning: "Agent and runtime must manage control groups in the same way: otherwise pods fail or lose their limits.",
    remedy: "Set --cgroup-driver of the agent and SystemdCgroup of containerd to the same driver.",
  },
  "managed-runtime": {
    area: "runtime",
    meaning: "svc up does not start without these programs.",
    remedy: "Install them, or set --container-runtime-endpoint to a runtime that runs already.",
  },
  "cri-socket": {
    area: "runtime",
    meaning: "Without its container runtime the node is NotReady and starts no pod.",
    remedy: "Start the runtime (systemctl start containerd), or set --container-runtime-endpoint to its socket.",
  },
  "cri-version": {
    area: "runtime",
    meaning: "The runtime does not serve CRI v1: the node is NotReady.",
    remedy:
      'Look at its log. Remove "cri" from disabled_plugins in /etc/containerd/config.toml; use containerd 1.6 or newer.',
  },
  "cri-runtime-ready": {
    area: "runtime",
    meaning: "The runtime reports that it cannot run containers: the node is NotReady.",
    remedy: "Look at the runtime's log (journalctl -u containerd).",
  },
  "cri-network-ready": {
    area: "runtime",
    meaning: "The runtime has no pod network: the node is NotReady, and only pods with hostNetwork start.",
    remedy: "Fix the findings of CNI, or install a network plugin.",
  },
  "cri-sandbox-image": {
    area: "runtime",
    meaning: "Every pod needs this image. It is pulled when the first pod starts, which needs a registry.",
    remedy: "Without a network, import the image: ctr -n k8s.io images import FILE.",
  },
  "cri-oom-score": {
    area: "runtime",
    meaning: 'Without CAP_SYS_RESOURCE containers fail with "write /proc/self/oom_score_adj: permission denied".',
    remedy: "Set restrict_oom_score_adj = true in containerd's CRI configuration, or grant the capability.",
  },
  "cni-config": {
    area: "CNI",
    meaning: "Pods get no network: they stay in ContainerCreating.",
    remedy: "Install a network plugin, or write a conflist to the directory.",
  },
  "cni-config-valid": {
    area: "CNI",
    meaning: "The runtime uses the first file by name and ignores files that it cannot read: pods get no network.",
    remedy: "Correct or remove the file.",
  },
  "cni-version": {
    area: "CNI",
    meaning: "Runtime and plugins know the versions 0.1.0 to 1.1.0 of CNI's configuration.",
    remedy: "Set cniVersion to one that the installed plugins have, for example 1.0.0.",
  },
  "cni-plugins": {
    area: "CNI",
    meaning: 'Sandboxes fail with "failed to find plugin": pods stay in ContainerCreating.',
    remedy: "Install the plugins there (Debian: containernetworking-plugins), or correct bin_dir of the runtime.",
  },
  "image-dir": {
    area: "images",
    meaning: "svc up does not start when --image-dir does not exist; archives that it cannot read are missing images.",
    remedy: "Create the directory, and copy archives (docker save, OCI layout) with the ending .tar to it.",
  },
  "images-imported": {
    area: "images",
    meaning: "Pods with these images need a registry, or do not start.",
    remedy: "Start svc up again, which imports archives whose images are missing.",
  },
  "clock-year": {
    area: "clock",
    meaning: "The clock is not set: certificates are not valid yet or have expired, and TLS fails.",
    remedy: "Set the clock (date -s), and enable a time service or a hardware clock.",
  },
  "clock-synchronised": {
    area: "clock",
    meaning: "The clock drifts: in time certificates, leases and tokens fail.",
    remedy: "Enable a time service: timedatectl set-ntp true, or install chrony.",
  },
  "clock-offset": {
    area: "clock",
    meaning: "Leases, tokens and new certificates of this node look expired, or not valid yet.",
    remedy: "Synchronise the clocks of both machines.",
  },
  "certificate-present": {
    area: "certificates",
    meaning: "The agent cannot authenticate, or cannot serve.",
    remedy: "Join the node again (--join, --bootstrap-svcconfig), or correct the path.",
  },
  "certificate-valid": {
    area: "certificates",
    meaning: "TLS connections with an expired certificate, or one that is not valid yet, fail.",
    remedy: "Check the clock first. Keep the agent running, which renews certificates, or join the node again.",
  },
  "certificate-chain": {
    area: "certificates",
    meaning: "The other side does not trust the certificate: connections fail.",
    remedy: "Remove the certificate and join the node again, or correct the CA.",
  },
  "certificate-names": {
    area: "certificates",
    meaning: "Clients that connect to one of these addresses refuse the certificate.",
    remedy: "Restart svc, or keep the agent running with --rotate-server-certificates: it requests another one.",
  },
  "key-mode": {
    area: "certificates",
    meaning: "Other users can act as this node.",
    remedy: "chmod 0600 the file, and replace the key if others may have read it.",
  },
  "disk-present": {
    area: "disk",
    meaning: "The directory cannot be used: the start fails.",
    remedy: "Create the directory, mount its file system, or choose another one by its flag.",
  },
  "disk-space": {
    area: "disk",
    meaning: "Below the threshold the node has DiskPressure: new pods are refused. A full disk ends writes.",
    remedy: "Free space: crictl rmi --prune, old logs, other data; or use a larger disk.",
  },
  "disk-inodes": {
    area: "disk",
    meaning: "Without inodes no file can be created, although there is space.",
    remedy: "Remove directories with many small files, or create the file system with more inodes.",
  },
  "disk-writable": {
    area: "disk",
    meaning: "Nothing can be written: the start fails.",
    remedy: "Mount it read-write (after an error, run fsck first), or choose another directory.",
  },
  "disk-type": {
    area: "disk",
    meaning: "The file system is lost at a reboot, or does not keep its promises of durability over a network.",
    remedy: "Use a local file system: ext4, xfs or btrfs.",
  },
  "store-reserve": {
    area: "disk",
    meaning: "On a full disk the store cannot delete: it keeps 4 to 32 MiB for that, when 28 MiB are free.",
    remedy: "Free 28 MiB on the disk of the store, or better 128 MiB.",
  },
  "dns-servers": {
    area: "DNS",
    meaning: "Names do not resolve; images are not pulled, and pods with dnsPolicy Default inherit the file.",
    remedy: "Name a server in the file, or set --resolv-conf to another one.",
  },
  "dns-limits": {
    area: "DNS",
    meaning: "Resolvers use three servers and 32 search domains of together 2048 characters; the rest is cut off.",
    remedy: "Shorten the lists in the file.",
  },
  "dns-loop": {
    area: "DNS",
    meaning: "In a pod the address is the pod itself: a DNS server in the cluster forwards to itself, others fail.",
    remedy: "With systemd-resolved, set --resolv-conf=/run/systemd/resolve/resolv.conf.",
  },
  "dns-lookup": {
    area: "DNS",
    meaning: "This machine does not resolve names.",
    remedy: "Check the servers in the file, and the way to them.",
  },
  "api-server-config": {
    area: "API server",
    meaning: "The agent cannot read how to connect: it does not start.",
    remedy: "Correct the file of --svcconfig, or join the node again.",
  },
  "api-server-reachable": {
    area: "API server",
    meaning: "The node is NotReady. Its pods keep running and restart from their checkpoint.",
    remedy: "Check network, firewall and address; whether the API server runs: curl -k URL/livez.",
  },
  "api-server-tls": {
    area: "API server",
    meaning: "The agent does not trust the API server and does not connect.",
    remedy: "Check the clock, the address and the CA in the file of --svcconfig.",
  },
  "api-server-credentials": {
    area: "API server",
    meaning: "The API server does not accept the certificate or token of the node.",
    remedy: "Join the node again: svc token create, then svc agent --join.",
  },
  "api-server-node-access": {
    area: "API server",
    meaning: "The node may not read and update its own objects.",
    remedy: "The user must be system:node:NAME of this node, in the group system:nodes.",
  },
  "api-server-version": {
    area: "API server",
    meaning: "A node may be up to three minor versions older than the API server, and not newer.",
    remedy: "Upgrade the API server before its nodes.",
  },
  "api-server-tunnel": {
    area: "API server",
    meaning: "The API server does not reach the agent: kubectl logs, exec, port-forward and top fail for its pods.",
    remedy:
      "Start the agent with --tunnel; it reports the reason. A proxy or load balancer must pass on its connection; " +
      "the node needs get of nodes/tunnel, which the authorization mode Node grants.",
  },
  "port-free": {
    area: "ports",
    meaning: "The start fails because the address is in use.",
    remedy: "Stop the other process, or choose another port by the flag.",
  },
  "firewall-forward": {
    area: "firewall",
    meaning: "Packets from and to pods are dropped, unless the network plugin adds rules of its own.",
    remedy: "iptables -P FORWARD ACCEPT, or accept the range of the pods (Docker sets the policy to DROP).",
  },
  "other-distribution": {
    area: "other distributions",
    meaning: "Two agents manage the same ports, control groups, network rules and CNI directories.",
    remedy: "Stop and uninstall the other one (k3s-uninstall.sh, snap remove microk8s, k0s reset, kubeadm reset).",
  },
} as const satisfies Readonly<Record<string, FindingKind>>;

export type FindingId = keyof typeof findingKinds;
