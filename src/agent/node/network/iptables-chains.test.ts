import t, { type Test } from "tap";
import { silentLogger } from "../../../std/log/logger.ts";
import { createFakeIptables } from "../../../testing/agent/flag-harness.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { type Iptables, maintainIptablesChains } from "./iptables-chains.ts";

const martians =
  "iptables filter KUBE-FIREWALL -m comment --comment block incoming localnet connections -d 127.0.0.0/8 " +
  "! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP";
const canaries = ["mangle", "nat", "filter"].map((table) => `${table} KUBE-KUBELET-CANARY`);

function keeping(t: Test, iptables: Iptables): { readonly clock: FakeClock; readonly ended: Promise<void> } {
  const clock = new FakeClock();
  const stop = new AbortController();
  const ended = maintainIptablesChains({ iptables, clock, log: silentLogger, signal: stop.signal });
  t.teardown(() => stop.abort());
  return { clock, ended };
}

t.test("maintainIptablesChains() creates kubelet's chains, and again after a table was flushed", async (t) => {
  const has = new Set<string>();
  const { clock } = keeping(t, createFakeIptables(has));
  await clock.advance(1000);
  const made = [...has].sort();
  const v4 = ["mangle KUBE-IPTABLES-HINT", "filter KUBE-FIREWALL", ...canaries].map((each) => `iptables ${each}`);
  const v6 = ["mangle KUBE-IPTABLES-HINT", ...canaries].map((each) => `ip6tables ${each}`);
  const jumps = ["OUTPUT", "INPUT"].map((chain) => `iptables filter ${chain} -j KUBE-FIREWALL`);
  t.same(made, [...v4, ...v6, ...jumps, martians].sort());
  for (const each of made) if (each.startsWith("iptables filter")) has.delete(each);
  await clock.advance(60_000);
  t.same([...has].sort(), made);
});

t.test("maintainIptablesChains() retries after an error, and stops when the program is missing", async (t) => {
  const has = new Set<string>();
  const real = createFakeIptables(has);
  let refused = 2;
  const { clock } = keeping(t, async (program, args) => {
    if (args.includes("-N") && refused-- > 0) throw new Error("Permission denied (you must be root)");
    await real(program, args);
  });
  await clock.advance(120_000);
  t.ok(has.has(martians));

  let calls = 0;
  const { ended } = keeping(t, async () => {
    calls++;
    throw Object.assign(new Error("spawn iptables ENOENT"), { code: "ENOENT" });
  });
  await ended;
  t.equal(calls, 2, "once per program");
});
