import t from "tap";
import { checkHost, checkPlatform, HostError, type Machine } from "./host.ts";

const everything = new Set([
  "/usr/bin/containerd",
  "/usr/bin/ctr",
  "/usr/bin/containerd-shim-runc-v2",
  "/usr/sbin/runc",
  "/usr/sbin/iptables",
  ...["bridge", "host-local", "loopback", "portmap"].map((plugin) => `/usr/lib/cni/${plugin}`),
]);

function machine(change: Partial<Machine> & { readonly without?: readonly string[] } = {}): Machine {
  const { without = [], ...rest } = change;
  return {
    platform: "linux",
    arch: "x64",
    uid: 0,
    path: ["/usr/bin"],
    isExecutable: (path) => everything.has(path) && !without.some((part) => path.includes(part)),
    isDirectory: () => true,
    readText: (path) => (path === "/proc/self/status" ? "Name:\tsvc\nCapEff:\t000001ffffffffff\n" : undefined),
    ...rest,
  };
}

function lacks(check: () => unknown): string {
  try {
    check();
  } catch (error) {
    if (error instanceof HostError) return error.missing.join("\n");
    throw error;
  }
  return "";
}

t.test("checkHost() finds programs outside of a user's PATH", async (t) => {
  t.match(checkHost(machine()), {
    containerd: "/usr/bin/containerd",
    runc: "/usr/sbin/runc",
    cniBinDir: "/usr/lib/cni",
    hasIptables: true,
    mayLowerOomScore: true,
    cgroupVersion: 1,
  });
});

t.test("checkHost() lists everything that is missing with its package", async (t) => {
  const text = lacks(() => checkHost(machine({ without: ["containerd", "runc", "ctr", "portmap"] })));
  for (const name of ["apt-get install containerd", "apt-get install runc", "containernetworking-plugins"])
    t.match(text, name);
});

t.test("checkHost() does not require iptables or the capability to lower OOM scores", async (t) => {
  const status = { readText: () => "CapEff:\t000001fffeffffff\n" };
  t.match(checkHost(machine({ without: ["iptables"], ...status })), {
    hasIptables: false,
    mayLowerOomScore: false,
    cgroupVersion: 2,
  });
});

t.test("checkPlatform() requires Linux, root and a supported CPU", async (t) => {
  t.equal(
    lacks(() => checkPlatform(machine())),
    "",
  );
  t.match(
    lacks(() => checkPlatform(machine({ platform: "darwin" }))),
    "needs Linux",
  );
  t.match(
    lacks(() => checkPlatform(machine({ uid: 1000 }))),
    /not root \(uid 1000\): run it with sudo/,
  );
  t.match(
    lacks(() => checkPlatform(machine({ arch: "riscv64" }))),
    "needs x64 or arm64",
  );
});
