/** What the proxy finds and sets on this host. */
import t from "tap";
import { silentLogger } from "../std/log/logger.ts";
import { run } from "./command/command.ts";
import { openNftables, prepareKernel } from "./open-nftables.ts";

const settings = (values: Readonly<Record<string, string>>, isReadOnly = false) => {
  const files = new Map(Object.entries(values));
  return {
    files,
    read: async (path: string) => files.get(path),
    write: async (path: string, value: string) => {
      if (isReadOnly) throw new Error("EROFS: read-only file system");
      files.set(path, value);
    },
    loadModule: async (name: string) => {
      if (name === "br_netfilter") files.set("/proc/sys/net/bridge/bridge-nf-call-iptables", "0");
    },
  };
};
const BRIDGE = "/proc/sys/net/bridge/bridge-nf-call-iptables";
const FORWARD = "/proc/sys/net/ipv4/ip_forward";

t.test("prepareKernel() sets what is not set, and loads the module of bridges if it is missing", async (t) => {
  const host = settings({ [FORWARD]: "0" });
  await prepareKernel(silentLogger, host);
  t.same(Object.fromEntries(host.files), { [BRIDGE]: "1\n", [FORWARD]: "1\n" });
});

t.test(
  "prepareKernel() leaves settings alone that are as needed, and reports those that it cannot change",
  async (t) => {
    const warnings: unknown[] = [];
    const log = { ...silentLogger, warn: (_: string, fields?: unknown) => void warnings.push(fields) };
    await prepareKernel(log, settings({ [BRIDGE]: "1", [FORWARD]: "1" }, true));
    t.same(warnings, []);
    await prepareKernel(log, settings({ [BRIDGE]: "1", [FORWARD]: "0" }, true));
    t.match(warnings, [{ path: FORWARD, error: /read-only/ }]);
  },
);

t.test("openNftables() returns nothing without nft", async (t) => {
  const none = async (): Promise<undefined> => undefined;
  t.equal(await openNftables(silentLogger, none), undefined);
});

t.test("svc proxy prints its version", async (t) => {
  t.equal(await run(["--version"]), 0);
});
