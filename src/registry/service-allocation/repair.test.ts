import t from "tap";
import { serviceKind } from "../../api/core/service/kind.ts";
import { ipAddressKind } from "../../api/networking/ip-address/kind.ts";
import type { Revision } from "../../storage/store.ts";
import { servicesFixture } from "../../testing/registry/service-allocation-fixture.ts";
import { create } from "../create.ts";
import { repairAddresses } from "./repair.ts";

t.test("repairAddresses() releases unused addresses after a minute, and ignores later ones", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/24"]);
  const [services, objects] = [f.registries.of(serviceKind), f.registries.of(ipAddressKind)];
  const scope = f.scope("");
  const name = { namespace: "default", name: "web" };
  await f.addresses.allocate(f.scope(), { ...name, name: "lost" }, "10.0.0.9", false);
  await create(services, f.scope(), {
    metadata: { name: "web" },
    spec: { clusterIP: "10.0.0.10", ports: [{ port: 80 }] },
  });
  await f.addresses.release(f.scope(), name, "10.0.0.10");
  const foreign = { parentRef: { resource: "widgets", name: "w" } };
  await create(objects, scope, { metadata: { name: "10.0.0.11" }, spec: foreign });
  const until = f.store.current();
  await f.addresses.allocate(f.scope(), { ...name, name: "being-written" }, "10.0.0.12", false);
  const repair = async (last: Revision) => await repairAddresses(services, objects, f.addresses, scope, last);
  t.same(await repair(until), { released: 0, allocated: 1 }, "the service may be about to be written");
  await f.clock.advance(61_000);
  t.same(await repair(until), { released: 1, allocated: 0 });
  t.same([...(await f.taken())].sort(), ["10.0.0.10", "10.0.0.11", "10.0.0.12"]);
  t.same(await repair(until), { released: 0, allocated: 0 });
});

t.test("repairAddresses() allocates the address of a service without IPAddress object", async (t) => {
  await using f = await servicesFixture(["10.0.0.0/24"]);
  const [services, objects] = [f.registries.of(serviceKind), f.registries.of(ipAddressKind)];
  await create(services, f.scope(), {
    metadata: { name: "web" },
    spec: { clusterIP: "10.0.0.10", ports: [{ port: 80 }] },
  });
  await f.addresses.release(f.scope(), { namespace: "default", name: "web" }, "10.0.0.10");
  await f.addresses.allocate(f.scope(), { namespace: "default", name: "impostor" }, "10.0.0.10", false);
  t.same(await repairAddresses(services, objects, f.addresses, f.scope(""), f.store.current()), {
    released: 1,
    allocated: 1,
  });
  const object = await objects.objects.get(objects.objects.key(undefined, "10.0.0.10"));
  t.equal(object?.spec?.parentRef?.name, "web");
});
