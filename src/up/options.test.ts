import t from "tap";
import { parseFlags } from "../flags/parse.ts";
import { upFlags } from "./flags.ts";
import { localServerUrl, serverNames, upOptions } from "./options.ts";

const eth0 = { address: "192.0.2.2", family: "IPv4", internal: false, netmask: "", mac: "", cidr: null } as const;
const surroundings = { hostname: "Edge-1", interfaces: { eth0: [eth0] }, routes: undefined };

function options(...argv: string[]) {
  return upOptions(parseFlags(upFlags, argv), surroundings);
}

t.test("upOptions() takes the name and addresses of the host by default", async (t) => {
  t.match(options(), {
    dataDir: "/var/lib/svc",
    runDir: "/run/svc",
    imageDir: "/var/lib/svc/images",
    podLogsDir: "/var/log/pods",
    podCidr: "10.244.0.0/24",
    podNetwork: "auto",
    networkNames: { bridge: "svc0" },
    nodeName: "edge-1",
    nodeIps: ["192.0.2.2"],
    runtimeEndpoint: undefined,
    stopPods: false,
  });
});

t.test(
  "upOptions() gives each data directory its own sockets and bridge, with names that fit Linux' limits",
  async (t) => {
    const [a, b] = [options("--data-dir=/tmp/a"), options("--data-dir=/tmp/b")];
    t.not(a.runDir, b.runDir);
    t.not(a.networkNames.bridge, b.networkNames.bridge);
    t.ok(a.networkNames.bridge.length <= 15);
    t.equal(a.podLogsDir, "/tmp/a/pod-logs");
  },
);

t.test("upOptions() refuses a pod range that is not IPv4", async (t) => {
  t.throws(() => options("--pod-cidr=2001:db8::/112"), /must be an IPv4 range/);
});

t.test("upOptions() gives each data directory its own ranges of services", async (t) => {
  t.match(options(), { serviceCidrs: ["10.96.0.0/16"], clusterCidrs: ["10.244.0.0/16"], clusterDns: ["10.96.0.10"] });
  const [a, b] = [options("--data-dir=/tmp/a"), options("--data-dir=/tmp/b")];
  t.match(a.serviceCidrs[0], /^10\.(?:9[7-9]|10\d|11[01])\.\d+\.0\/20$/);
  t.not(a.serviceCidrs[0], b.serviceCidrs[0]);
  t.not(a.proxyTable, b.proxyTable);
});

t.test("upOptions() leaves addresses for the pods of other nodes", async (t) => {
  t.same(options("--pod-cidr=10.250.1.0/24").clusterCidrs, ["10.250.0.0/16"]);
  t.same(options("--pod-cidr=10.250.1.0/28").clusterCidrs, ["10.250.0.0/20"]);
  t.same(options("--pod-cidr=10.0.0.0/16").clusterCidrs, ["10.0.0.0/10"], "beside the range of services");
  const lan = { ...surroundings, routes: "\neth0\t0002A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0" };
  const ranges = (...argv: string[]) => upOptions(parseFlags(upFlags, argv), lan).clusterCidrs;
  t.same(ranges("--pod-cidr=192.168.77.0/24"), ["192.168.64.0/18"], "beside the network of the host");
  t.same(ranges("--pod-cidr=192.168.3.0/24"), ["192.168.3.0/24"], "no larger range is free");
  t.equal(options("--cluster-cidr=10.250.0.0/16").podCidr, "10.250.0.0/24");
  t.throws(() => options("--cluster-cidr=10.250.0.0/16", "--pod-cidr=10.9.0.0/24"), {
    message: "--pod-cidr=10.9.0.0/24 is outside of --cluster-cidr=10.250.0.0/16",
  });
});

t.test("localServerUrl() uses loopback for a server on all interfaces", async (t) => {
  t.equal(localServerUrl(options()), "https://127.0.0.1:6443");
  t.equal(localServerUrl(options("--bind-address=::", "--secure-port=7443")), "https://[::1]:7443");
  t.equal(localServerUrl(options("--bind-address=2001:db8::1")), "https://[2001:db8::1]:6443");
});

t.test(
  "serverNames() contains each name once: those of the host, of Kubernetes and of the pods' gateway",
  async (t) => {
    const names = serverNames(options("--bind-address=192.0.2.2"));
    t.equal(new Set(names).size, names.length);
    for (const name of ["localhost", "edge-1", "192.0.2.2", "kubernetes.default.svc", "10.96.0.1", "10.244.0.1"]) {
      t.ok(names.includes(name), name);
    }
  },
);
