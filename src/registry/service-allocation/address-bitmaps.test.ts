import t from "tap";
import { serviceKind } from "../../api/core/service/kind.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { createLogger, silentLogger } from "../../std/log/logger.ts";
import { parseCidr } from "../../std/net/ip.ts";
import type { Store } from "../../storage/store.ts";
import { type Fixture, fixture, rejectionStatus } from "../../testing/registry/registry-fixture.ts";
import { create } from "../create.ts";
import { type AddressBitmap, AddressBitmaps } from "./address-bitmaps.ts";
import type { ServiceName } from "./addresses.ts";
import { Bits } from "./range-bitmap.ts";
import { type LeakedBits, repairBitmap } from "./repair-bitmaps.ts";

const name: ServiceName = { namespace: "default", name: "web" };

function open(f: Fixture, ...texts: readonly string[]): AddressBitmaps {
  const cidrs = texts.map(parseCidr).filter((cidr) => cidr !== undefined);
  return new AddressBitmaps(cidrs, f.registries.deps, seededRandom(1));
}

/** With the first, empty value of each range. */
async function openEmpty(f: Fixture, ...texts: readonly string[]): Promise<AddressBitmaps> {
  const bitmaps = open(f, ...texts);
  for (const range of bitmaps.ranges) await range.replace(async () => range.empty());
  return bitmaps;
}

t.test("AddressBitmaps allocates each address once, from both ends of races", async (t) => {
  await using f = fixture();
  const one = await openEmpty(f, "10.0.0.0/28", "fd00::/112");
  const other = open(f, "10.0.0.0/28", "fd00::/112");
  const scope = f.scope();
  t.equal(await one.allocate(scope, name, "10.0.0.5", false), "10.0.0.5");
  await t.rejects(other.allocate(scope, name, "10.0.0.5", false), /^provided IP is already allocated$/);
  t.equal(await other.allocate(scope, name, "10.0.0.5", true), "10.0.0.5", "a dry run");
  const next = [one, other].flatMap((each) =>
    Array.from({ length: 6 }, () => each.allocateNext(scope, name, "IPv4", false)),
  );
  const found = await Promise.all(next);
  t.equal(new Set(found).size, 12);
  await one.allocateNext(scope, name, "IPv4", false);
  await t.rejects(other.allocateNext(scope, name, "IPv4", false), /^range is full$/);
  t.equal(await other.allocateNext(scope, name, "IPv4", true), "10.0.0.0", "a dry run");
  await one.release(scope, name, "10.0.0.5");
  t.equal(await other.allocateNext(scope, name, "IPv4", false), "10.0.0.5");
  t.match(await one.allocateNext(scope, name, "IPv6", false), /^fd00::/);
});

t.test("AddressBitmaps refuses addresses outside of the ranges", async (t) => {
  await using f = fixture();
  const bitmaps = await openEmpty(f, "10.0.0.0/24");
  for (const ip of ["10.0.0.0", "10.0.0.255", "10.0.1.1"]) {
    const message = `the provided IP (${ip}) is not in the valid range. The range of valid IPs is 10.0.0.0/24`;
    await t.rejects(bitmaps.allocate(f.scope(), name, ip, false), { message });
    await bitmaps.release(f.scope(), name, ip);
  }
  const mismatch = /^the provided network does not match the current range$/;
  await t.rejects(bitmaps.allocate(f.scope(), name, "fd00::1", false), mismatch);
  for (const [range, why] of [
    ["10.0.0.0/11", "for 32-bit addresses, the mask must be >= 12"],
    ["fd00::/107", "for 128-bit addresses, the mask must be >= 108"],
  ]) {
    t.throws(() => open(f, range ?? ""), { message: new RegExp(`^Cannot use .*${range}: it is too large; ${why}$`) });
  }
});

t.test("AddressBitmaps allocates nothing before the first repair, nor from another range", async (t) => {
  await using f = fixture();
  const failed = await rejectionStatus(open(f, "10.0.0.0/24").allocateNext(f.scope(), name, "IPv4", false));
  t.match(failed, { code: 500, message: /cannot allocate resources of type serviceipallocations at this time$/ });
  await openEmpty(f, "10.0.0.0/24");
  const changed = open(f, "10.1.0.0/24").allocateNext(f.scope(), name, "IPv4", false);
  await t.rejects(changed, /^the provided range does not match the current range$/);
});

t.test("AddressBitmaps stores what Kubernetes stores", async (t) => {
  await using f = fixture({ names: "k8s" });
  const bitmaps = await openEmpty(f, "10.0.0.0/24");
  for (const ip of ["10.0.0.1", "10.0.0.10"]) await bitmaps.allocate(f.scope(), name, ip, false);
  const stored = await f.store.get("/registry/ranges/serviceips");
  const text = Buffer.from(stored?.value ?? []).toString("latin1");
  t.ok(text.startsWith("k8s\0\n\x15\n\x02v1\x12\x0fRangeAllocation"));
  // Bit 0 is the first address after that of the network, and the number is big-endian.
  t.ok(text.includes("\x12\x0b10.0.0.0/24\x1a\x02\x02\x01"));
});

t.test(
  "repairBitmap() sets the bits of services, and clears others when it finds them for the third time",
  async (t) => {
    await using f = fixture();
    const bitmaps = await openEmpty(f, "10.0.0.0/24");
    const [range] = bitmaps.ranges as [AddressBitmap];
    const services = f.registries.of(serviceKind);
    const put = (service: string, clusterIP: string) =>
      create(services, f.scope(), {
        metadata: { name: service },
        spec: { clusterIP, clusterIPs: [clusterIP], ports: [{ port: 80 }] },
      });
    for (const [service, ip] of [
      ["web", "10.0.0.9"],
      ["twin", "10.0.0.9"],
      ["far", "10.9.9.9"],
      ["headless", "None"],
    ] as const)
      await put(service, ip);
    await bitmaps.allocate(f.scope(), name, "10.0.0.7", false);
    const leaked: LeakedBits = new Map();
    const lines: string[] = [];
    const stderr = { write: (line: string) => lines.push(line), flushSync: () => {} };
    using log = createLogger({}, { clock: f.clock, stderr });
    const repair = (logger = silentLogger) => repairBitmap(services, range, leaked, f.scope(""), logger);
    t.same(await repair(log), { released: 0, allocated: 1 });
    log.flush();
    t.match(lines.join(""), /assigned to multiple services[^\n]*twin|assigned to multiple services[^\n]*web/);
    t.match(lines.join(""), /not within the service CIDR[^\n]*10\.9\.9\.9/);
    await t.rejects(bitmaps.allocate(f.scope(), name, "10.0.0.7", false), /already allocated/);
    t.same(await repair(), { released: 0, allocated: 0 });
    t.same(await repair(), { released: 1, allocated: 0 });
    await bitmaps.allocate(f.scope(), name, "10.0.0.7", false);
    await t.rejects(bitmaps.allocate(f.scope(), name, "10.0.0.9", false), /already allocated/);
  },
);

t.test("repairBitmap() counts an address once although the write of its bitmap loses races", async (t) => {
  await using f = fixture();
  const bitmaps = await openEmpty(f, "10.0.0.0/24");
  await bitmaps.allocate(f.scope(), name, "10.0.0.7", false);
  let [races, writes] = [0, 0];
  const update: Store["update"] = async (...args) => {
    writes++;
    // Another server writes first.
    if (races-- > 0) await bitmaps.allocate(f.scope(), name, `10.0.0.${20 + races}`, false);
    return await f.store.update(...args);
  };
  const get = f.store.get.bind(f.store);
  const store = new Proxy(f.store, {
    get: (target, key) => (key === "update" ? update : key === "get" ? get : Reflect.get(target, key)),
  });
  const cidr = parseCidr("10.0.0.0/24")!;
  const [range] = new AddressBitmaps([cidr], { ...f.registries.deps, store }, seededRandom(1)).ranges;
  const services = f.registries.of(serviceKind);
  const web = { clusterIP: "10.0.0.9", clusterIPs: ["10.0.0.9"], ports: [{ port: 80 }] };
  await create(services, f.scope(), { metadata: { name: "web" }, spec: web });
  const leaked: LeakedBits = new Map();
  const repair = () => repairBitmap(services, range!, leaked, f.scope(""), silentLogger);
  races = 2;
  t.same(await repair(), { released: 0, allocated: 1 });
  t.equal(writes, 3);
  t.same(
    [...leaked],
    [
      [6, 1],
      [19, 1],
      [20, 1],
    ],
    "each found once",
  );
  races = 0;
  t.same(await repair(), { released: 0, allocated: 0 });
  t.same(await repair(), { released: 3, allocated: 0 });
});

t.test("repairBitmap() starts again for a changed range", async (t) => {
  await using f = fixture();
  const before = await openEmpty(f, "10.0.0.0/24");
  await before.allocate(f.scope(), name, "10.0.0.7", false);
  const after = open(f, "10.1.0.0/24");
  const [range] = after.ranges as [AddressBitmap];
  const services = f.registries.of(serviceKind);
  t.same(await repairBitmap(services, range, new Map(), f.scope(""), silentLogger), { released: 0, allocated: 0 });
  await after.allocate(f.scope(), name, "10.1.0.7", false);
});

t.test("Bits drops what does not fit, and counts from the last byte", async (t) => {
  const bits = Bits.fromBase64(9, Buffer.from([0xff, 0x01, 0x80]).toString("base64"));
  t.same([...bits], [7, 8]);
  bits.delete(8);
  t.equal(bits.toBase64(), Buffer.from([0x80]).toString("base64"));
  t.equal(new Bits(9).toBase64(), "");
  t.same([...Bits.fromBase64(9, "")], []);
});
