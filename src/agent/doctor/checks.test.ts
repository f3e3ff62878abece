/** Every finding, good and bad, from facts. */
import t from "tap";
import { createAuthority, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import { type ApiServerFacts, checkApiServer } from "./api-server.ts";
import { checkCertificate } from "./certificates.ts";
import { checkCgroups } from "./cgroups.ts";
import { checkClock } from "./clock.ts";
import { checkCni } from "./cni.ts";
import { checkDirectory } from "./disk.ts";
import { checkDns } from "./dns.ts";
import type { Finding, Severity } from "./finding.ts";
import { type FindingId, findingKinds } from "./finding-kinds.ts";
import { checkImages } from "./images.ts";
import { checkKernel } from "./kernel.ts";
import { checkMachineFacts, checkUniqueName, type MachineFacts } from "./machine.ts";
import { checkDistributions, checkFirewall } from "./network.ts";
import { checkPorts, type PortOwner } from "./ports.ts";
import { checkRuntime, type RuntimeSubject } from "./runtime.ts";
import { parseSettings, type RuntimeFacts } from "./runtime-facts.ts";
import type { CertificateSubject } from "./subject.ts";

const MIB = 2 ** 20;
const now = Date.UTC(2026, 10, 22);
const day = 86_400_000;

interface Row {
  readonly name: string;
  readonly findings: readonly Finding[];
  /** The finding that the row is about. */
  readonly id: FindingId;
  readonly severity: Severity;
  readonly found: RegExp;
}

const rows: Row[] = [];

/** Without a severity, the finding is ok. */
function expect(id: FindingId, severity: Severity, found: RegExp, findings: readonly Finding[]): void {
  rows.push({ name: `${id}: ${severity}, ${found.source}`, findings, id, severity, found });
}

function allOk(findings: readonly Finding[]): void {
  for (const { id } of findings) expect(id, "ok", /./, findings);
}

const kernel = {
  release: "6.1.0-18-amd64",
  overlay: true,
  bridge: true,
  veth: true,
  bridgeNetfilter: "1",
  ipForward: "1",
  netfilter: true,
  hasIptables: true,
  hasNft: true,
  hasIproute: true,
  vxlan: true,
  userNamespacesMax: 15_000,
  seccompActions: "allow log",
  parameters: [],
};
const lenient = { seccompDefault: false, protectKernelDefaults: false, serviceProxy: false, podNetwork: undefined };
const podNetwork = { isOptional: false };
const strict = { seccompDefault: true, protectKernelDefaults: true, serviceProxy: true, podNetwork };
allOk(checkKernel(kernel, strict));
const withKernel = (
  change: Partial<Parameters<typeof checkKernel>[0]>,
  settings: Parameters<typeof checkKernel>[1] = lenient,
) => checkKernel({ ...kernel, ...change }, settings);
expect("kernel-pod-network", "ok", /not needed/, withKernel({ hasIproute: false }));
expect("kernel-pod-network", "error", /not installed/, withKernel({ hasIproute: false }, strict));
expect("kernel-pod-network", "warning", /no vxlan/, withKernel({ vxlan: false }, strict));
const optional = { ...strict, podNetwork: { isOptional: true } };
expect("kernel-pod-network", "warning", /not installed/, withKernel({ hasIproute: false }, optional));
expect("kernel-version", "warning", /^4\.14\.0$/, withKernel({ release: "4.14.0" }));
expect("kernel-version", "error", /^2\.6\.32$/, withKernel({ release: "2.6.32" }));
expect("kernel-version", "error", /^unknown$/, withKernel({ release: "" }));
expect("kernel-overlayfs", "warning", /no overlay/, withKernel({ overlay: false }));
expect("kernel-overlayfs", "ok", /cannot be determined/, withKernel({ overlay: undefined }));
expect("kernel-bridge", "error", /no bridge/, withKernel({ bridge: false }));
expect("kernel-bridge", "error", /no veth/, withKernel({ veth: false }));
expect("kernel-br-netfilter", "warning", /not loaded/, withKernel({ bridgeNetfilter: undefined }));
expect("kernel-br-netfilter", "warning", /is 0/, withKernel({ bridgeNetfilter: "0" }));
expect("kernel-ip-forward", "warning", /is 0/, withKernel({ ipForward: "0" }));
expect("kernel-iptables", "warning", /not installed/, withKernel({ hasIptables: false }));
expect("kernel-iptables", "error", /no packet rules/, withKernel({ netfilter: false }));
expect("kernel-nftables", "ok", /not needed/, withKernel({ hasNft: false }));
expect("kernel-nftables", "error", /not installed/, withKernel({ hasNft: false }, strict));
expect("kernel-user-namespaces", "warning", /is 0/, withKernel({ userNamespacesMax: 0 }));
expect("kernel-user-namespaces", "warning", /has no user/, withKernel({ userNamespacesMax: undefined }));
expect("kernel-seccomp", "warning", /no seccomp/, withKernel({ seccompActions: undefined }));
expect("kernel-seccomp", "error", /no seccomp/, withKernel({ seccompActions: undefined }, strict));
expect("kernel-parameters", "error", /kernel\/panic/, withKernel({ parameters: ["kernel/panic is 0"] }, strict));
expect("kernel-parameters", "ok", /not enforced/, withKernel({ parameters: ["kernel/panic is 0"] }));

const eth0 = { address: "192.0.2.2", family: "IPv4", internal: false, netmask: "", mac: "", cidr: null } as const;
const lo = { ...eth0, address: "127.0.0.1", internal: true };
const machine: MachineFacts = {
  uid: 0,
  memoryBytes: 2048 * MIB,
  memoryAvailableBytes: 1024 * MIB,
  cpus: 2,
  swap: [],
  interfaces: { lo: [lo], eth0: [eth0] },
};
const node = { nodeName: "edge-7.example", nodeIps: ["192.0.2.2"], failSwapOn: true, reservedCpuMillis: 500 };
const withMachine = (change: Partial<MachineFacts>, settings: Partial<typeof node> = {}) =>
  checkMachineFacts({ ...machine, ...change }, { ...node, ...settings });
allOk(withMachine({}));
expect("machine-user", "error", /uid 1000/, withMachine({ uid: 1000 }));
expect("machine-memory", "warning", /512 MiB/, withMachine({ memoryBytes: 512 * MIB }));
expect("machine-memory", "warning", /50 MiB available/, withMachine({ memoryAvailableBytes: 50 * MIB }));
expect("machine-memory", "error", /128 MiB/, withMachine({ memoryBytes: 128 * MIB }));
expect("machine-cpus", "error", /1, 1000m reserved/, withMachine({ cpus: 1 }, { reservedCpuMillis: 1000 }));
expect("swap", "error", /\/dev\/sda2/, withMachine({ swap: ["/dev/sda2"] }));
expect("swap", "warning", /\/dev\/sda2/, withMachine({ swap: ["/dev/sda2"] }, { failSwapOn: false }));
expect("node-name", "error", /"edge_7"/, withMachine({}, { nodeName: "edge_7" }));
expect("node-name", "error", /"-edge"/, withMachine({}, { nodeName: "-edge" }));
expect("node-name", "warning", /localhost/, withMachine({}, { nodeName: "localhost" }));
expect("node-ip", "error", /198\.51\.100\.1 is not an address of/, withMachine({}, { nodeIps: ["198.51.100.1"] }));
expect("node-ip", "error", /is not an address/, withMachine({}, { nodeIps: ["edge"] }));
expect("node-ip", "warning", /loopback/, withMachine({}, { nodeIps: ["127.0.0.1"] }));
const offline = { ...machine, interfaces: { lo: [lo], eth0: [] } };
expect("node-ip", "warning", /loopback addresses only/, checkMachineFacts(offline, { ...node, nodeIps: [] }));
expect("node-ip", "ok", /default route/, withMachine({}, { nodeIps: [] }));
expect("node-name-unique", "ok", /this machine/, checkUniqueName("edge-7", "a1", "a1"));
expect("node-name-unique", "warning", /the id b2/, checkUniqueName("edge-7", "a1", "b2"));

const cgroups = {
  layout: "v2" as const,
  controllers: ["cpu", "memory", "pids", "cpuset", "hugetlb"],
  hasSystemd: true,
  runtimeSystemd: false,
};
const cgroupfs = { cgroupDriver: "cgroupfs", failCgroupV1: false };
const systemd = { cgroupDriver: "systemd", failCgroupV1: false };
allOk(checkCgroups(cgroups, cgroupfs));
allOk(checkCgroups({ ...cgroups, runtimeSystemd: undefined }, systemd));
expect("cgroup-version", "warning", /v1$/, checkCgroups({ ...cgroups, layout: "v1" }, cgroupfs));
expect("cgroup-version", "warning", /hybrid/, checkCgroups({ ...cgroups, layout: "hybrid" }, cgroupfs));
const refusing = { ...cgroupfs, failCgroupV1: true };
expect("cgroup-version", "error", /--fail-cgroupv1/, checkCgroups({ ...cgroups, layout: "v1" }, refusing));
expect("cgroup-version", "error", /no control groups/, checkCgroups({ ...cgroups, layout: undefined }, cgroupfs));
const noMemory = { ...cgroups, controllers: ["cpu", "pids"] };
expect("cgroup-controllers", "error", /missing: memory/, checkCgroups(noMemory, cgroupfs));
expect("cgroup-driver", "error", /agent uses systemd, the runtime cgroupfs/, checkCgroups(cgroups, systemd));
expect("cgroup-driver", "error", /does not run/, checkCgroups({ ...cgroups, hasSystemd: false }, systemd));

const ready = (type: string, status: boolean) => ({ type, status, reason: "Because", message: "of it" });
const runtime: RuntimeFacts = {
  endpoint: "unix:///run/containerd/containerd.sock",
  path: "/run/containerd/containerd.sock",
  socket: { kind: "socket", mode: 0o660, bytes: 0 },
  version: { runtimeName: "containerd", runtimeVersion: "1.7.1", runtimeApiVersion: "v1" },
  error: undefined,
  status: { status: { conditions: [ready("RuntimeReady", true), ready("NetworkReady", true)] } },
  settings: parseSettings('{"sandboxImage":"pause:3","restrictOOMScoreAdj":false}'),
  hasSandboxImage: true,
  imageDirectories: [],
  missingImages: [],
};
const expected: RuntimeSubject = { missingPrograms: [], isExpected: true, mayLowerOomScore: true };
const withRuntime = (change: Partial<RuntimeFacts>, subject: Partial<RuntimeSubject> = {}) =>
  checkRuntime({ ...runtime, ...change }, { ...expected, ...subject });
allOk(withRuntime({}));
expect("managed-runtime", "error", /runc is not/, withRuntime({}, { missingPrograms: ["runc is not installed"] }));
expect("cri-socket", "error", /does not exist/, withRuntime({ socket: undefined }));
expect("cri-socket", "ok", /svc up creates it/, withRuntime({ socket: undefined }, { isExpected: false }));
expect("cri-socket", "error", /not a socket/, withRuntime({ socket: { kind: "file", mode: 0o600, bytes: 1 } }));
expect("cri-socket", "warning", /mode 0666/, withRuntime({ socket: { kind: "socket", mode: 0o666, bytes: 0 } }));
const silent = { version: undefined, status: undefined, error: "connection refused" };
expect("cri-version", "error", /connection refused/, withRuntime(silent));
expect("cri-version", "ok", /nothing answers/, withRuntime(silent, { isExpected: false }));
expect("cri-version", "error", /v1alpha2/, withRuntime({ version: { runtimeApiVersion: "v1alpha2" } }));
const broken = { status: { conditions: [ready("RuntimeReady", false), ready("NetworkReady", false)] } };
expect("cri-runtime-ready", "error", /Because of it/, withRuntime({ status: broken }));
expect("cri-network-ready", "error", /Because of it/, withRuntime({ status: broken }));
expect("cri-sandbox-image", "warning", /pause:3 is missing/, withRuntime({ hasSandboxImage: false }));
expect("cri-sandbox-image", "ok", /does not report/, withRuntime({ settings: parseSettings("no JSON") }));
expect("cri-oom-score", "error", /restrict_oom_score_adj is false/, withRuntime({}, { mayLowerOomScore: false }));
const unreported = withRuntime({ settings: parseSettings(undefined) }, { mayLowerOomScore: false });
expect("cri-oom-score", "warning", /missing$/, unreported);
const restricting = { settings: parseSettings('{"restrictOOMScoreAdj":true}') };
expect("cri-oom-score", "ok", /restricts/, withRuntime(restricting, { mayLowerOomScore: false }));

const file = { name: "10-a.conflist", problem: undefined, version: "1.0.0", plugins: ["bridge"] };
const cni = { confDir: "/etc/cni/net.d", binDirs: ["/opt/cni/bin"], files: [file], executables: ["bridge"] };
allOk(checkCni(cni, false));
expect("cni-config", "error", /does not exist/, checkCni({ ...cni, files: undefined }, false));
expect("cni-config", "error", /no \.conflist/, checkCni({ ...cni, files: [] }, false));
expect("cni-config", "ok", /svc up writes/, checkCni({ ...cni, files: [] }, true));
const unparsable = { ...file, name: "00-b.conflist", problem: "Unexpected end of JSON input" };
expect("cni-config", "error", /no file in/, checkCni({ ...cni, files: [unparsable] }, false));
expect("cni-config-valid", "error", /00-b.*Unexpected end/, checkCni({ ...cni, files: [unparsable] }, false));
expect("cni-config-valid", "warning", /00-b/, checkCni({ ...cni, files: [unparsable, file] }, false));
expect("cni-version", "warning", /"9\.0\.0"/, checkCni({ ...cni, files: [{ ...file, version: "9.0.0" }] }, false));
expect("cni-plugins", "error", /bridge: not in \/opt/, checkCni({ ...cni, executables: [] }, false));

const images = { directory: "/var/lib/svc/images", isSet: true, recordFile: "" };
const archive = { path: "/var/lib/svc/images/a.tar", isReadable: true };
allOk(checkImages(images, { archives: [archive], imported: ["a:1"] }, []));
expect("image-dir", "error", /not a directory/, checkImages(images, { archives: undefined, imported: [] }, []));
const unset = { ...images, isSet: false };
expect("image-dir", "ok", /no images to import/, checkImages(unset, { archives: undefined, imported: [] }, []));
const empty = { archives: [{ ...archive, isReadable: false }], imported: [] };
expect("image-dir", "warning", /a\.tar: empty/, checkImages(images, empty, []));
const imported = { archives: [archive], imported: ["a:1"] };
expect("images-imported", "warning", /lacks a:1/, checkImages(images, imported, ["a:1"]));

const clock = { now, isSynchronised: true, source: "chrony: Normal", offsetMs: 300 };
allOk(checkClock(clock));
expect("clock-year", "error", /^1970-/, checkClock({ ...clock, now: 5000 }));
expect("clock-synchronised", "warning", /not synchronised/, checkClock({ ...clock, isSynchronised: false }));
const unknown = checkClock({ ...clock, isSynchronised: undefined, source: "no time service was found" });
expect("clock-synchronised", "warning", /no time service/, unknown);
expect("clock-offset", "warning", /10 s ahead of/, checkClock({ ...clock, offsetMs: 10_000 }));
expect("clock-offset", "error", /3600 s behind/, checkClock({ ...clock, offsetMs: -3_600_000 }));

const ca = await createAuthority({ commonName: "ca", days: 3650, from: now - day }, now);
const otherCa = await createAuthority({ commonName: "ca", days: 3650, from: now - day }, now);
const usages = ["server"] as const;
const request = { commonName: "edge-7", usages: [...usages], days: 365, alternativeNames: ["192.0.2.2"] };
const leaf = await issueCertificate(ca, request, now);
const certificate: CertificateSubject = {
  name: "serving certificate",
  certFile: "/pki/a.crt",
  keyFile: "/pki/a.key",
  caFile: "/pki/ca.crt",
  names: ["192.0.2.2"],
  isCreated: false,
};
const key = { kind: "file", mode: 0o600, bytes: 1 } as const;
const files = { pem: leaf.cert, ca: ca.cert, key };
allOk(checkCertificate(certificate, files, now + day));
const absent = { ...files, pem: undefined };
expect("certificate-present", "error", /a\.crt does not exist/, checkCertificate(certificate, absent, now));
const created = { ...certificate, isCreated: true };
expect("certificate-present", "ok", /not yet/, checkCertificate(created, absent, now));
expect("certificate-present", "error", /no certificate/, checkCertificate(certificate, { ...files, pem: "x" }, now));
expect("certificate-valid", "error", /expired on/, checkCertificate(certificate, files, now + 400 * day));
expect("certificate-valid", "error", /in the future/, checkCertificate(certificate, files, now - 400 * day));
expect("certificate-valid", "warning", /in \d+ days/, checkCertificate(certificate, files, now + 355 * day));
const foreign = { ...files, ca: otherCa.cert };
expect("certificate-chain", "error", /not signed by/, checkCertificate(certificate, foreign, now));
expect("certificate-chain", "error", /cannot be read/, checkCertificate(certificate, { ...files, ca: undefined }, now));
const moved = { ...certificate, names: ["192.0.2.3", "edge-8"] };
expect("certificate-names", "warning", /192\.0\.2\.3, edge-8/, checkCertificate(moved, files, now));
const open = { ...files, key: { ...key, mode: 0o644 } };
expect("key-mode", "error", /a\.key has mode 0644/, checkCertificate(certificate, open, now));

const fs = { totalBytes: 10_240 * MIB, availableBytes: 5120 * MIB, inodes: 1000, freeInodes: 900 };
const directory = { flag: "--data-dir", path: "/data", space: "10%", inodes: "5%", hasStore: true };
const disk = { existing: "/data", fs, type: "ext4", isReadOnly: false, mayWrite: true };
const withFs = (change: Partial<typeof fs>) => checkDirectory(directory, { ...disk, fs: { ...fs, ...change } });
allOk(checkDirectory(directory, disk));
expect("disk-present", "error", /not a directory/, checkDirectory(directory, { ...disk, existing: undefined }));
expect("disk-present", "ok", /created at the start, in \//, checkDirectory(directory, { ...disk, existing: "/" }));
expect("disk-writable", "error", /read-only/, checkDirectory(directory, { ...disk, isReadOnly: true }));
expect("disk-writable", "error", /cannot be written/, checkDirectory(directory, { ...disk, mayWrite: false }));
expect("disk-space", "warning", /500 MiB of 10\.0 GiB.*threshold/, withFs({ availableBytes: 500 * MIB }));
expect("disk-space", "error", /10 MiB of/, withFs({ availableBytes: 10 * MIB }));
expect("disk-inodes", "warning", /40 of 1000 .*threshold is 50/, withFs({ freeInodes: 40 }));
expect("disk-inodes", "error", /0 of 1000/, withFs({ freeInodes: 0 }));
expect("disk-type", "warning", /tmpfs/, checkDirectory(directory, { ...disk, type: "tmpfs" }));
expect("disk-type", "error", /nfs4/, checkDirectory(directory, { ...disk, type: "nfs4" }));
expect("store-reserve", "warning", /20 MiB free/, withFs({ availableBytes: 20 * MIB }));

const resolv = (...lines: string[]) => ({
  path: "/etc/resolv.conf",
  resolvConf: lines.join("\n"),
  name: "edge-7",
  lookupError: undefined,
});
const dns = resolv("# from DHCP", "nameserver 192.0.2.53", "search a.example b.example");
allOk(checkDns(dns));
expect("dns-servers", "error", /cannot be read/, checkDns({ ...dns, resolvConf: undefined }));
expect("dns-servers", "warning", /names no server/, checkDns(resolv("#nameserver 192.0.2.53")));
expect("dns-servers", "warning", /ns\.example is not/, checkDns(resolv("nameserver ns.example")));
expect("dns-servers", "ok", /inherit nothing/, checkDns({ ...dns, path: "" }));
const many = ["1", "2", "3", "4"].map((last) => `nameserver 192.0.2.${last}`);
expect("dns-limits", "warning", /4 servers/, checkDns(resolv(...many)));
const domains = Array.from({ length: 33 }, (_, index) => `d${index}`).join(" ");
expect("dns-limits", "warning", /33 search domains/, checkDns(resolv("nameserver 192.0.2.1", `search ${domains}`)));
const long = resolv("nameserver 192.0.2.1", `search ${"a".repeat(2049)}`);
expect("dns-limits", "warning", /2049 characters/, checkDns(long));
expect("dns-loop", "warning", /127\.0\.0\.53/, checkDns(resolv("nameserver 127.0.0.53")));
expect("dns-lookup", "warning", /ENOTFOUND/, checkDns({ ...dns, lookupError: "ENOTFOUND" }));

const server: ApiServerFacts = {
  configProblem: undefined,
  server: "https://192.0.2.1:6443",
  connectProblem: undefined,
  version: "v1.33.0",
  user: "system:node:edge-7",
  groups: ["system:nodes"],
  nodeStatus: 200,
  machineId: undefined,
  tunnel: { status: "True", message: "the tunnel to the API server is open" },
  offsetMs: 0,
};
const edge = { nodeName: "edge-7", version: "v1.33.0", tunnel: true };
const withServer = (change: Partial<ApiServerFacts>, version = "v1.33.0") =>
  checkApiServer({ ...server, ...change }, { ...edge, version });
allOk(withServer({}));
expect("api-server-config", "error", /line 3/, withServer({ configProblem: "line 3 of the file" }));
const refused = { kind: "network", text: "connect ECONNREFUSED" } as const;
expect("api-server-reachable", "error", /ECONNREFUSED/, withServer({ connectProblem: refused }));
const untrusted = { kind: "tls", text: "self-signed certificate" } as const;
expect("api-server-tls", "error", /self-signed/, withServer({ connectProblem: untrusted }));
expect("api-server-credentials", "error", /401/, withServer({ nodeStatus: 401, user: undefined }));
expect("api-server-credentials", "error", /401/, withServer({ nodeStatus: 403, user: "system:anonymous" }));
expect("api-server-node-access", "error", /edge-7 .*403/, withServer({ nodeStatus: 403 }));
expect("api-server-node-access", "warning", /not system:node:edge-7/, withServer({ user: "admin" }));
expect("api-server-node-access", "warning", /without the group/, withServer({ groups: [] }));
expect("api-server-node-access", "ok", /not registered yet/, withServer({ nodeStatus: 404 }));
const closed = { status: "False", message: "the tunnel is closed: connect ECONNREFUSED" };
expect("api-server-tunnel", "ok", /is open/, withServer({}));
expect("api-server-tunnel", "warning", /closed: connect/, withServer({ tunnel: closed }));
expect("api-server-tunnel", "warning", /no condition TunnelReady/, withServer({ tunnel: undefined }));
expect("api-server-version", "warning", /agent v1\.34/, withServer({}, "v1.34.0"));
expect("api-server-version", "warning", /API server v1\.37/, withServer({ version: "v1.37.2" }));
expect("api-server-version", "ok", /API server v1\.36/, withServer({ version: "v1.36.2" }));

const listener = { flag: "--port", port: 10250, address: "0.0.0.0" };
const owner: PortOwner = { port: 10250, address: "::", pid: 7, program: "kubelet", svcProgram: undefined };
const isOwn = ({ svcProgram }: PortOwner): boolean => svcProgram === "agent";
expect("port-free", "ok", /10250: free/, checkPorts([listener], [], isOwn));
expect(
  "port-free",
  "ok",
  /svc listens \(process 7\)/,
  checkPorts([listener], [{ ...owner, svcProgram: "agent" }], isOwn),
);
expect("port-free", "error", /process 7 \(kubelet\)/, checkPorts([listener], [owner], isOwn));
expect("port-free", "warning", /cannot be read/, checkPorts([listener], [{ ...owner, pid: undefined }], isOwn));
const local = [{ ...listener, address: "127.0.0.1" }];
expect("port-free", "ok", /free/, checkPorts(local, [{ ...owner, address: "192.0.2.2" }], isOwn));

expect("firewall-forward", "ok", /ACCEPT/, checkFirewall("ACCEPT"));
expect("firewall-forward", "ok", /not in use/, checkFirewall(undefined));
expect("firewall-forward", "warning", /DROP/, checkFirewall("DROP"));
expect("other-distribution", "ok", /none/, checkDistributions([]));
const k3s = { name: "k3s", isRunning: true, traces: ["process k3s"] };
expect("other-distribution", "error", /k3s runs: process k3s/, checkDistributions([k3s]));
const left = { ...k3s, isRunning: false, traces: ["/etc/rancher"] };
expect("other-distribution", "warning", /has left files: \/etc\/rancher/, checkDistributions([left]));

for (const { name, findings, id, severity, found } of rows) {
  t.test(name, async (t) => {
    const same = findings.filter((each) => each.id === id);
    t.equal(same.length, 1, "one finding has the id");
    t.equal(same[0]?.severity, severity);
    t.match(same[0]?.found, found);
  });
}

t.test("the rows have every finding, good and bad", async (t) => {
  // Made in doctor.ts.
  const elsewhere = ["check-failed", "configuration"];
  const has = (id: string, isOk: boolean) => rows.some((row) => row.id === id && (row.severity === "ok") === isOk);
  for (const id of Object.keys(findingKinds).filter((each) => !elsewhere.includes(each))) {
    t.ok(has(id, false), `${id} is not ok in a row`);
    if (id !== "api-server-config") t.ok(has(id, true), `${id} is ok in a row`);
  }
});
