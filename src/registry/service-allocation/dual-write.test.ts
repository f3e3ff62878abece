import t from "tap";
import { seededRandom } from "../../std/crypto/random.ts";
import { parseCidr } from "../../std/net/ip.ts";
import { servicesFixture } from "../../testing/registry/service-allocation-fixture.ts";
import { AddressBitmaps } from "./address-bitmaps.ts";
import { DualWriteAddresses } from "./dual-write.ts";

const name = { namespace: "default", name: "web" };
const other = { namespace: "default", name: "other" };

/** The allocators of a server with both gates off and on, over one store. */
async function start(cidrs: readonly string[], ranges: readonly string[]) {
  const f = await servicesFixture(cidrs);
  const parsed = ranges.map((range) => parseCidr(range)!);
  const bitmaps = new AddressBitmaps(parsed, f.registries.deps, seededRandom(1));
  for (const range of bitmaps.ranges) await range.replace(async () => range.empty());
  return { f, bitmaps, dual: new DualWriteAddresses(f.addresses, bitmaps) };
}

t.test("DualWriteAddresses records each address in an object and in the bitmap, and releases both", async (t) => {
  const { f, bitmaps, dual } = await start(["10.0.0.0/24"], ["10.0.0.0/24"]);
  await using _ = f;
  t.equal(await dual.allocate(f.scope(), name, "10.0.0.9", false), "10.0.0.9");
  await t.rejects(bitmaps.allocate(f.scope(), other, "10.0.0.9", false), /^provided IP is already allocated$/);
  const next = await dual.allocateNext(f.scope(), name, "IPv4", false);
  t.same([...(await f.taken())].sort(), ["10.0.0.9", next].sort());
  await t.rejects(bitmaps.allocate(f.scope(), other, next, false), /^provided IP is already allocated$/);
  t.equal(await dual.release(f.scope(), other, "10.0.0.9"), false, "an address of another service");
  await t.rejects(bitmaps.allocate(f.scope(), other, "10.0.0.9", false), /^provided IP is already allocated$/);
  t.equal(await dual.release(f.scope(), name, "10.0.0.9"), true);
  await bitmaps.allocate(f.scope(), other, "10.0.0.9", false);
  t.same(await f.taken(), [next]);
});

t.test("DualWriteAddresses allocates addresses with free bits first, then those without object", async (t) => {
  const { f, bitmaps, dual } = await start(["10.0.0.0/29"], ["10.0.0.0/29"]);
  await using _ = f;
  for (let last = 1; last <= 4; last++) await bitmaps.allocate(f.scope(), other, `10.0.0.${last}`, false);
  await t.rejects(dual.allocate(f.scope(), name, "10.0.0.3", false), /^provided IP is already allocated$/);
  await f.addresses.allocate(f.scope(), other, "10.0.0.5", false);
  t.equal(await dual.allocateNext(f.scope(), name, "IPv4", false), "10.0.0.6");
  t.same([...(await f.taken())].sort(), ["10.0.0.5", "10.0.0.6"]);
  const rest = new Set<string>();
  for (let i = 0; i < 4; i++) rest.add(await dual.allocateNext(f.scope(), name, "IPv4", false));
  t.same([...rest].sort(), ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"], "Kubernetes leaks bits");
  await t.rejects(dual.allocateNext(f.scope(), name, "IPv4", false), /^range is full$/);
  t.equal(await dual.allocateNext(f.scope(), name, "IPv4", true), "10.0.0.0", "a dry run");
  t.equal(await dual.allocate(f.scope(), name, "10.0.0.5", true), "10.0.0.5", "a dry run");
});

t.test("DualWriteAddresses leaves no bit of an address with an object free for other servers", async (t) => {
  const { f, bitmaps, dual } = await start(["10.0.0.0/24"], ["10.0.0.0/24"]);
  await using _ = f;
  const held = new Set<string>();
  const mine = async (): Promise<void> => {
    for (let i = 0; i < 30; i++) {
      const address = await dual.allocateNext(f.scope(), name, "IPv4", false);
      if (i % 2 === 0) await dual.release(f.scope(), name, address);
      else held.add(address);
    }
  };
  /** Fails where Kubernetes' allocator does: it attempts no other address than that of its bit. */
  const kubernetes = async (): Promise<void> => {
    for (let i = 0; i < 30; i++) {
      const address = await bitmaps.allocateNext(f.scope(), other, "IPv4", false);
      await f.addresses.allocate(f.scope(), other, address, false);
      held.add(address);
    }
  };
  await Promise.all([mine(), kubernetes(), mine(), kubernetes()]);
  t.equal(held.size, 90);
  t.same([...(await f.taken())].sort(), [...held].sort());
  await t.rejects(bitmaps.allocate(f.scope(), other, [...held][0]!, false), /already allocated/);
});

t.test("DualWriteAddresses clears the bit of an address that is in no ServiceCIDR", async (t) => {
  const { f, bitmaps, dual } = await start(["10.1.0.0/24"], ["10.0.0.0/24"]);
  await using _ = f;
  await t.rejects(dual.allocate(f.scope(), name, "10.0.0.9", false), /does not match the current range$/);
  await bitmaps.allocate(f.scope(), other, "10.0.0.9", false);
  t.match(await dual.allocateNext(f.scope(), name, "IPv4", false), /^10\.1\.0\./);
});

t.test("DualWriteAddresses records addresses of further ServiceCIDRs in objects only", async (t) => {
  const { f, dual } = await start(["10.0.0.0/24", "fd00::/112"], ["10.0.0.0/24"]);
  await using _ = f;
  t.equal(await dual.allocate(f.scope(), name, "fd00::7", false), "fd00::7");
  t.match(await dual.allocateNext(f.scope(), name, "IPv6", false), /^fd00::/);
  t.equal(await dual.release(f.scope(), name, "fd00::7"), true);
});
