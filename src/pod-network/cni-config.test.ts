import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { conflist, findForeignConfig, gatewayOf, hasConflist, removeConflist, writeConflist } from "./cni-config.ts";

const options = {
  confDir: "/c",
  leaseDir: "/l",
  bridge: "svc0",
  podCidrs: ["10.9.0.0/16"],
  ipMasq: false,
  hairpin: true,
};

t.test("conflist() maps ports only with iptables", async (t) => {
  t.match(conflist({ ...options, hasIptables: true }), {
    plugins: [
      { type: "bridge", bridge: "svc0", ipMasq: false, ipam: { ranges: [[{ subnet: "10.9.0.0/16" }]] } },
      { type: "portmap" },
    ],
  });
  const { plugins } = conflist({ ...options, hasIptables: false }) as { readonly plugins: readonly unknown[] };
  t.equal(plugins.length, 1);
  t.match(conflist({ ...options, ipMasq: true, hasIptables: true }), { plugins: [{ ipMasq: true }, {}] });
  t.match(conflist({ ...options, hairpin: false, hasIptables: false }), { plugins: [{ hairpinMode: false }] });
});

t.test("conflist() gives pods an address and a default route of each IP family of the node", async (t) => {
  t.match(conflist({ ...options, podCidrs: ["10.9.0.0/24", "fd00:9::/64"], hasIptables: false }), {
    plugins: [
      {
        ipam: {
          ranges: [[{ subnet: "10.9.0.0/24" }], [{ subnet: "fd00:9::/64" }]],
          routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }],
        },
      },
    ],
  });
});

t.test("writeConflist() writes what differs, and files of other networks are found", async (t) => {
  const confDir = join(t.testdir(), "net.d");
  t.equal(await findForeignConfig(confDir), undefined, "no directory");
  t.notOk(await hasConflist(confDir));
  const written = { ...options, confDir, hasIptables: true };
  t.ok(await writeConflist(written));
  t.ok(await hasConflist(confDir));
  const path = join(confDir, "10-svc.conflist");
  const before = await stat(path);
  t.notOk(await writeConflist(written));
  t.equal((await stat(path)).mtimeMs, before.mtimeMs);
  t.ok(await writeConflist({ ...written, podCidrs: ["10.8.0.0/24"] }));
  t.match(await readFile(path, "utf8"), "10.8.0.0/24");
  t.equal(await findForeignConfig(confDir), undefined);
  await writeFile(join(confDir, "calico-kubeconfig"), "");
  t.equal(await findForeignConfig(confDir), undefined, "no configuration");
  await writeFile(join(confDir, "10-calico.conflist"), "{}");
  t.equal(await findForeignConfig(confDir), "10-calico.conflist");
  await removeConflist(confDir);
  await removeConflist(confDir);
  t.notOk(await hasConflist(confDir));
});

t.test("gatewayOf() is the first address of the range", async (t) => {
  t.equal(gatewayOf("10.244.0.0/24"), "10.244.0.1");
  t.equal(gatewayOf("10.244.7.9/20"), "10.244.0.1");
  t.equal(gatewayOf("200.0.255.128/25"), "200.0.255.129");
});

t.test("gatewayOf() refuses text that is not an IPv4 range of sufficient size", async (t) => {
  for (const text of ["", "10.0.0.0", "10.0.0.0/31", "10.0.0.0/x", "2001:db8::/112", "10.0.0/24"]) {
    t.throws(() => gatewayOf(text), /must be an IPv4 range/, text);
  }
});
