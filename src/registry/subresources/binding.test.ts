import t from "tap";
import { podKind } from "../../api/core/pod/kind.ts";
import { type Fixture, fixture, rejectionStatus } from "../../testing/registry/registry-fixture.ts";
import { create } from "../create.ts";
import { remove } from "../delete.ts";
import { get } from "../get.ts";
import { update } from "../update.ts";
import { bind } from "./binding.ts";

async function pods(f: Fixture) {
  const registry = f.registries.of(podKind);
  const spec = { containers: [{ name: "c", image: "i" }] };
  await create(registry, f.scope(), { metadata: { name: "web" }, spec });
  return registry;
}

t.test("bind() assigns a pod to a node once", async (t) => {
  await using f = fixture();
  const registry = await pods(f);
  const binding = { metadata: { annotations: { a: "b" } }, target: { kind: "Node", name: "n1" } };
  await bind(registry, f.scope(), "web", binding);
  const { object } = await get(registry, f.scope(), "web");
  t.equal(object.spec?.nodeName, "n1");
  t.match(object.metadata?.annotations, { a: "b" });
  t.match(object.status?.conditions, [{ type: "PodScheduled", status: "True" }]);
  t.match(await rejectionStatus(bind(registry, f.scope(), "web", binding)), {
    code: 409,
    message: `Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "n1"`,
  });
});

t.test("bind() rejects other targets, other pods and terminating pods", async (t) => {
  await using f = fixture();
  const registry = await pods(f);
  const to = (target: { kind?: string; name?: string }) => bind(registry, f.scope(), "web", { target });
  t.equal((await rejectionStatus(to({ kind: "Disk", name: "n1" }))).code, 500);
  t.equal((await rejectionStatus(to({ kind: "Node" }))).code, 500);
  const other = bind(registry, f.scope(), "web", { metadata: { uid: "other" }, target: { name: "n1" } });
  t.equal((await rejectionStatus(other)).code, 409);
  const { object } = await get(registry, f.scope(), "web");
  await update(registry, f.scope(), "web", {
    ...object,
    metadata: { ...object.metadata, finalizers: ["example.com/f"] },
  });
  await remove(registry, f.scope(), "web");
  t.match(await rejectionStatus(to({ name: "n1" })), { code: 409, message: /is being deleted/ });
});
