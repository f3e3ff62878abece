import t from "tap";
import type { StatefulSet } from "../../api/apps/stateful-set/schema.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { OwnerReference } from "../../api/meta/object-meta.ts";
import { hasStaleReference, hasUnexpectedController, hasWantedOwner, withWantedOwner } from "./claim-retention.ts";

const policies = ["Retain", "Delete"] as const;
type Policy = (typeof policies)[number];

function set(whenDeleted: Policy, whenScaled: Policy): StatefulSet {
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: "db", uid: "set" },
    spec: {
      replicas: 2,
      selector: {},
      template: {},
      persistentVolumeClaimRetentionPolicy: { whenDeleted, whenScaled },
    },
  };
}

function pod(name: string): Pod {
  return { apiVersion: "v1", kind: "Pod", metadata: { name, uid: name } };
}

function reference(owner: StatefulSet | Pod, more: Partial<OwnerReference> = {}): OwnerReference {
  const { apiVersion = "", kind = "", metadata } = owner;
  const { name = "", uid = "" } = metadata ?? {};
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true, ...more };
}

function claim(...ownerReferences: readonly OwnerReference[]): PersistentVolumeClaim {
  return { metadata: { name: "data", ownerReferences } };
}

function ownersOf({ metadata }: PersistentVolumeClaim): string {
  return (metadata?.ownerReferences ?? []).map(({ kind, name }) => `${kind}/${name}`).join();
}

const living = pod("db-1");
const scaledDown = pod("db-2");

for (const [whenDeleted, whenScaled, ofLiving, ofScaledDown] of [
  ["Retain", "Retain", "", ""],
  ["Delete", "Retain", "StatefulSet/db", "StatefulSet/db"],
  ["Retain", "Delete", "", "Pod/db-2"],
  ["Delete", "Delete", "StatefulSet/db", "Pod/db-2"],
] as const) {
  t.test(`withWantedOwner() with whenDeleted ${whenDeleted} and whenScaled ${whenScaled}`, async (t) => {
    const owner = set(whenDeleted, whenScaled);
    for (const [member, wanted] of [
      [living, ofLiving],
      [scaledDown, ofScaledDown],
    ] as const) {
      for (const before of [claim(), claim(reference(owner)), claim(reference(member))]) {
        const after = withWantedOwner(before, owner, member);
        t.equal(ownersOf(after), wanted, `${member.metadata?.name}, before: ${ownersOf(before) || "none"}`);
        t.equal(hasWantedOwner(before, owner, member), ownersOf(before) === wanted);
        t.ok(hasWantedOwner(after, owner, member), "nothing is left to do");
      }
    }
  });
}

t.test("hasWantedOwner() replaces a reference that is not of the controller", async (t) => {
  const owner = set("Delete", "Retain");
  const before = claim(reference(owner, { controller: false }));
  t.notOk(hasWantedOwner(before, owner, living));
  t.equal(withWantedOwner(before, owner, living).metadata?.ownerReferences?.[0]?.controller, true);
});

t.test("claims that another controller manages get no owner", async (t) => {
  const owner = set("Delete", "Delete");
  const other = { apiVersion: "v1", kind: "Backup", name: "b", uid: "b", controller: true };
  t.ok(hasUnexpectedController(claim(other), owner, living));
  t.ok(hasWantedOwner(claim(other), owner, living));
  const both = claim(other, reference(owner));
  t.notOk(hasWantedOwner(both, owner, living));
  t.equal(ownersOf(withWantedOwner(both, owner, living)), "Backup/b");
  t.notOk(hasUnexpectedController(claim(other), set("Retain", "Retain"), living), "which matters to no Retain policy");
});

t.test("claims of an earlier set or pod of the same name are left alone", async (t) => {
  const owner = set("Delete", "Delete");
  const stale = claim(reference(owner, { uid: "earlier" }));
  t.ok(hasStaleReference(stale, owner));
  t.ok(hasWantedOwner(stale, owner, living));
  t.notOk(hasStaleReference(claim(reference(owner)), owner));
  t.ok(hasStaleReference(claim(reference(living, { uid: "earlier" })), living));
});
