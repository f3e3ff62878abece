import t from "tap";
import { formatCidr, parseCidr } from "../../std/net/ip.ts";
import { CidrSet } from "./cidr-set.ts";

const cidr = (text: string) => parseCidr(text)!;

function openSet(range: string, prefixLength: number) {
  const set = new CidrSet(cidr(range), prefixLength);
  return {
    set,
    take: (count: number) =>
      Array.from({ length: count }, () => {
        const block = set.allocate();
        return block === undefined ? undefined : formatCidr(block);
      }),
  };
}

t.test("blocks are taken in order, and a released one only after the others", async (t) => {
  const { set, take } = openSet("10.244.0.0/22", 24);
  t.same(take(2), ["10.244.0.0/24", "10.244.1.0/24"]);
  set.release(cidr("10.244.0.0/24"));
  t.same(take(3), ["10.244.2.0/24", "10.244.3.0/24", "10.244.0.0/24"]);
  t.same(take(1), [undefined], "all are taken");
});

t.test("IPv6 ranges are divided too", async (t) => {
  t.same(openSet("fd00:10:244::/56", 64).take(2), ["fd00:10:244::/64", "fd00:10:244:1::/64"]);
});

t.test("occupied blocks are not given, those of larger and smaller ranges included", async (t) => {
  const { set, take } = openSet("10.0.0.0/21", 24);
  t.ok(set.occupy(cidr("10.0.0.0/23")));
  t.ok(set.occupy(cidr("10.0.3.128/25")));
  t.notOk(set.occupy(cidr("10.1.0.0/24")));
  t.notOk(set.occupy(cidr("fd00::/64")));
  t.same(take(3), ["10.0.2.0/24", "10.0.4.0/24", "10.0.5.0/24"]);
  t.ok(set.occupy(cidr("10.0.0.0/8")));
  t.same(take(1), [undefined]);
});

t.test("ranges that cannot be divided are refused", async (t) => {
  t.throws(() => new CidrSet(cidr("10.0.0.0/24"), 16), { message: /Cannot divide the cluster range 10\.0\.0\.0\/24/ });
  t.throws(() => new CidrSet(cidr("10.0.0.0/8"), 33), { message: /Cannot divide/ });
  t.throws(() => new CidrSet(cidr("fd00::/32"), 64), { message: /at most 65536 blocks/ });
});
