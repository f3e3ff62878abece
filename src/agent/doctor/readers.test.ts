/** Facts read from the files of a host, for which a directory stands. */
import { chmodSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import t from "tap";
import { readCgroupFacts } from "./cgroups.ts";
import { readClockFacts } from "./clock.ts";
import { checkCni, readCniFacts } from "./cni.ts";
import { readDirectoryFacts } from "./disk.ts";
import { createHostReader, type HostReader } from "./host-reader.ts";
import { readImageDir } from "./images.ts";
import { readKernelFacts } from "./kernel.ts";
import { readMachineFacts } from "./machine.ts";
import { readDistributions, readForwardPolicy } from "./network.ts";
import { readPortOwners } from "./ports.ts";
import { parseSettings } from "./runtime-facts.ts";

const signal = new AbortController().signal;

/** A host whose programs print fixed texts; others are not installed. */
function hostOf(root: string, programs: Readonly<Record<string, string>> = {}): HostReader {
  const host = createHostReader({ root, env: { PATH: "/bin" } });
  return {
    ...host,
    run: async (program) => (programs[program] === undefined ? undefined : { code: 0, stdout: programs[program] }),
  };
}

t.test("readKernelFacts() finds features that are loaded, built in or available as modules", async (t) => {
  const root = t.testdir({
    proc: {
      filesystems: "nodev\tproc\nnodev\toverlay\n",
      sys: {
        kernel: { osrelease: "6.1.0\n" },
        net: { ipv4: { ip_forward: "0\n" } },
        user: { max_user_namespaces: "0\n" },
      },
    },
    boot: { "config-6.1.0": "CONFIG_BRIDGE=m\nCONFIG_NF_TABLES=y\n# CONFIG_VETH is not set\n" },
    lib: { modules: { "6.1.0": { "modules.dep": "kernel/net/bridge/bridge.ko.xz: kernel/net/llc/llc.ko.xz\n" } } },
    usr: { sbin: { iptables: "" } },
  });
  chmodSync(join(root, "usr/sbin/iptables"), 0o755);
  const facts = await readKernelFacts(hostOf(root));
  t.match(facts, {
    release: "6.1.0",
    overlay: true,
    bridge: true,
    veth: false,
    netfilter: true,
    hasIptables: true,
    ipForward: "0",
    bridgeNetfilter: undefined,
    userNamespacesMax: 0,
  });
});

t.test("readKernelFacts() reads /proc/config.gz, and reports what it cannot determine", async (t) => {
  const packed = gzipSync("CONFIG_BRIDGE=m\nCONFIG_VETH=y\n");
  const root = t.testdir({ proc: { "config.gz": packed, sys: { kernel: { osrelease: "6.1.0\n" } } } });
  t.match(await readKernelFacts(hostOf(root)), { bridge: undefined, veth: true, overlay: false });
  const damaged = t.testdir({ proc: { "config.gz": packed.subarray(0, 20) } });
  t.match(await readKernelFacts(hostOf(damaged)), { release: "", bridge: undefined, hasIptables: false });
});

t.test("readCgroupFacts() distinguishes v1, v2 and hybrid", async (t) => {
  const v1 = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\ncgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n";
  const v2 = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
  const host = (mounts: string) => hostOf(t.testdir({ proc: { self: { mounts } } }));
  t.match(await readCgroupFacts(host(v1), true), { layout: "v1", runtimeSystemd: true, hasSystemd: false });
  t.ok((await readCgroupFacts(host(v1), true)).controllers.includes("pids"));
  t.match(await readCgroupFacts(host(v1 + v2), undefined), { layout: "hybrid" });
  t.match(await readCgroupFacts(host("proc /proc proc rw 0 0\n"), undefined), { layout: undefined });
  const unified = t.testdir({
    proc: { self: { mounts: "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n" } },
    sys: { fs: { cgroup: { "cgroup.controllers": "cpu memory pids\n" } } },
    run: { systemd: { system: {} } },
  });
  t.match(await readCgroupFacts(hostOf(unified), undefined), {
    layout: "v2",
    controllers: ["cpu", "memory", "pids"],
    hasSystemd: true,
  });
});

t.test("readCniFacts() reports each file that the runtime could not use", async (t) => {
  const conflist = { cniVersion: "1.0.0", name: "a", plugins: [{ type: "bridge", ipam: { type: "host-local" } }] };
  const root = t.testdir({
    conf: {
      "00-cut.conflist": '{"name": "a", "plugins": [',
      "01-list.conflist": '{"name": "a"}',
      "02-anonymous.conf": '{"type": "bridge"}',
      "03-null.json": "null",
      "04-text.conf": '"bridge"',
      "05-no-type.conflist": '{"name": "a", "plugins": [null, {}]}',
      "10-good.conflist": JSON.stringify(conflist),
      "README.txt": "",
    },
    bin: { bridge: "", "host-local": "", loopback: "" },
  });
  for (const name of ["bridge", "loopback"]) chmodSync(join(root, "bin", name), 0o755);
  const facts = await readCniFacts(hostOf(root), "/conf", ["/bin"]);
  t.same(
    facts.files?.map(({ problem }) => problem === undefined),
    [false, false, false, false, false, false, true],
  );
  t.same(facts.files?.at(-1)?.plugins, ["loopback", "bridge", "host-local"]);
  const findings = checkCni(facts, false);
  // Root may execute no file that has no execute permission at all.
  t.match(findings.find(({ id }) => id === "cni-plugins")?.found, /^host-local: not in \/bin/);
  t.match(
    findings.find(({ id }) => id === "cni-config-valid"),
    { severity: "warning", found: /00-cut.*05-no-type/ },
  );
});

t.test("readClockFacts() takes the kernel's state, then that of a time service", async (t) => {
  const empty = t.testdir({ proc: {} });
  const read = (host: HostReader) => readClockFacts(host, 0, undefined, signal);
  t.match(await read(hostOf(empty, { adjtimex: "         status: 64\n" })), { isSynchronised: false });
  t.match(await read(hostOf(empty, { adjtimex: "    status:       0x1 (PLL)\n" })), { isSynchronised: true });
  t.match(await read(hostOf(empty, { chronyc: "A0,x,2,0,Normal\n" })), { isSynchronised: true });
  t.match(await read(hostOf(empty, { chronyc: "0,,0,0,Not synchronised\n" })), { isSynchronised: false });
  t.match(await read(hostOf(empty)), { isSynchronised: undefined, source: "no time service was found" });
  const timesync = t.testdir({ run: { systemd: { timesync: { synchronized: "" } } } });
  t.match(await read(hostOf(timesync)), { isSynchronised: true });
  const service = t.testdir({ proc: { 12: { comm: "chronyd\n" }, self: {} } });
  t.match(await read(hostOf(service)), { isSynchronised: undefined, source: /^chronyd runs/ });
});

t.test("readDirectoryFacts() finds the mount of a directory that does not exist yet", async (t) => {
  const mounts = "/dev/a / ext4 rw 0 0\ntmpfs /data tmpfs ro,size=1m 0 0\n/dev/b /data2 xfs rw 0 0\n";
  const root = t.testdir({ proc: { self: { mounts } }, data: {}, file: "" });
  const host = hostOf(root);
  t.match(await readDirectoryFacts(host, "/data/svc/pki"), { existing: "/data", type: "tmpfs", isReadOnly: true });
  t.match(await readDirectoryFacts(host, "/other"), { existing: "/", type: "ext4", isReadOnly: false });
  t.match(await readDirectoryFacts(host, "/file"), { existing: undefined });
  t.match(await readDirectoryFacts(host, "/file/below"), { existing: undefined });
});

t.test("readPortOwners() finds the process, and svc's programs by their command line", async (t) => {
  const line = (address: string, state: string, inode: number) =>
    `   0: ${address} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1\n`;
  const root = t.testdir({
    proc: {
      net: {
        tcp: `header\n${line("0100007F:280A", "0A", 11)}${line("0100007F:192B", "01", 12)}${line("0100007F:280F", "0A", 15)}`,
        tcp6: `header\n${line("00000000000000000000000000000000:192B", "0A", 13)}${line("B80D0120000000000000000001000000:2808", "0A", 14)}`,
      },
      7: { fd: {}, cmdline: "/opt/kubelet\0--token=secret\0" },
      8: { fd: {}, cmdline: "/usr/bin/env\0/usr/local/bin/svc\0up\0--data-dir=/x\0" },
      10: { fd: {}, cmdline: "svc agent --config=/x/y --token=secret" },
    },
  });
  symlinkSync("socket:[11]", join(root, "proc/7/fd/3"));
  symlinkSync("socket:[13]", join(root, "proc/8/fd/4"));
  symlinkSync("socket:[15]", join(root, "proc/10/fd/5"));
  mkdirSync(join(root, "proc/9"));
  t.same(await readPortOwners(hostOf(root), [10250, 6443, 10248, 10255]), [
    { port: 10250, address: "127.0.0.1", pid: 7, program: "kubelet", svcProgram: undefined },
    { port: 10255, address: "127.0.0.1", pid: 10, program: "svc agent", svcProgram: "agent" },
    { port: 6443, address: "::", pid: 8, program: "svc up", svcProgram: "up" },
    {
      port: 10248,
      address: "2001:0db8:0000:0000:0000:0000:0000:0001",
      pid: undefined,
      program: "unknown",
      svcProgram: undefined,
    },
  ]);
  t.same(await readPortOwners(hostOf(t.testdir({})), [6443]), []);
});

t.test("readForwardPolicy() lists rules only if that loads no module", async (t) => {
  const programs = { iptables: "-P FORWARD DROP\n-A FORWARD -j X\n" };
  const modules = { modules: { "6.1.0": {} } };
  const proc = { sys: { kernel: { osrelease: "6.1.0\n" } } };
  t.equal(await readForwardPolicy(hostOf(t.testdir({ proc, lib: modules }), programs), signal), undefined);
  const loaded = t.testdir({ proc: { ...proc, net: { ip_tables_names: "nat\nfilter\n" } }, lib: modules });
  t.equal(await readForwardPolicy(hostOf(loaded, programs), signal), "DROP");
  t.equal(await readForwardPolicy(hostOf(loaded), signal), undefined);
});

t.test("readDistributions() finds processes and files", async (t) => {
  const root = t.testdir({ proc: { 5: { comm: "kubelite\n" } }, var: { lib: { k0s: {} }, snap: { microk8s: {} } } });
  t.match(await readDistributions(hostOf(root)), [
    { name: "MicroK8s", isRunning: true, traces: ["process kubelite", "/var/snap/microk8s"] },
    { name: "k0s", isRunning: false, traces: ["/var/lib/k0s"] },
  ]);
  t.same(await readDistributions(hostOf(t.testdir({}))), []);
});

t.test("readImageDir() reads archives and the record of those that were imported", async (t) => {
  const record = JSON.stringify({ "/images/a.tar": { names: ["a:1", "b:2"] } });
  const root = t.testdir({ images: { "a.tar": "x", "b.tar": "", "c.txt": "" }, "images.json": record });
  const subject = { directory: "/images", isSet: false, recordFile: "/images.json" };
  t.match(await readImageDir(hostOf(root), subject), {
    archives: [{ isReadable: true }, { isReadable: false }],
    imported: ["a:1", "b:2"],
  });
  const damaged = t.testdir({ "images.json": "{" });
  t.same(await readImageDir(hostOf(damaged), subject), { archives: undefined, imported: [] });
});

t.test("readMachineFacts() reads memory, CPUs and swap", async (t) => {
  const proc = {
    meminfo: "MemTotal:        2048 kB\nMemAvailable:    1024 kB\n",
    cpuinfo: "processor\t: 0\n\nprocessor\t: 1\n",
    swaps: "Filename\tType\n/dev/sda2 partition 1\n",
  };
  t.match(await readMachineFacts(hostOf(t.testdir({ proc }))), {
    memoryBytes: 2 ** 21,
    memoryAvailableBytes: 2 ** 20,
    cpus: 2,
    swap: ["/dev/sda2"],
  });
});

t.test("parseSettings() reads the configurations of containerd 1 and 2", async (t) => {
  const runtimes = { runc: { options: { SystemdCgroup: true } } };
  const one = { sandboxImage: "p", restrictOOMScoreAdj: true, cni: { binDir: "/a", confDir: "/c" } };
  const containerd = { defaultRuntimeName: "runc", runtimes };
  t.same(parseSettings(JSON.stringify({ ...one, containerd })), {
    sandboxImage: "p",
    restrictsOomScore: true,
    cniBinDirs: ["/a"],
    cniConfDir: "/c",
    systemdCgroup: true,
  });
  const two = parseSettings(JSON.stringify({ cni: { binDirs: ["/a", "/b"] }, containerd: null }));
  t.match(two, { sandboxImage: undefined, cniBinDirs: ["/a", "/b"], systemdCgroup: undefined });
  for (const text of ["null", "[]", "1", "{"]) t.match(parseSettings(text), { sandboxImage: undefined });
});

t.test("the host reader runs programs with an end, and returns what there is", async (t) => {
  const host = createHostReader();
  t.match(await host.run("sh", ["-c", "echo a; exit 3"], signal), { code: 3, stdout: "a\n" });
  t.equal(await host.run("no-such-program", [], signal), undefined);
  const stop = AbortSignal.abort(new Error("late"));
  t.equal(await host.run("sleep", ["60"], stop), undefined);
  t.equal(await host.readText("/no-such-file"), undefined);
  t.same(await host.links("/no-such-directory"), []);
  t.equal(await host.hasProgram("sh"), true);
});
