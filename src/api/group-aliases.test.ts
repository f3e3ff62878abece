import t from "tap";
import { groupNames, listedGroupNames } from "./group-aliases.ts";

const none = { served: false, listed: false };
const served = { served: true, listed: false };
const both = { served: true, listed: true };

t.test("groupNames() returns the names under which a group is served", async (t) => {
  t.same(groupNames("events.svc.io", none), ["events.svc.io"]);
  for (const aliases of [served, both])
    t.same(groupNames("events.svc.io", aliases), ["events.svc.io", "events.k8s.io"]);
  for (const group of ["", "apps", "example.com"]) t.same(groupNames(group, both), [group]);
});

t.test("listedGroupNames() returns one name unless both are listed", async (t) => {
  const events = { group: "events.svc.io" };
  t.same(listedGroupNames(events, none), ["events.svc.io"]);
  t.same(listedGroupNames(events, served), ["events.k8s.io"]);
  t.same(listedGroupNames(events, both), ["events.svc.io", "events.k8s.io"]);
  t.same(listedGroupNames({ group: "apps" }, served), ["apps"]);
});

t.test("listedGroupNames() returns the group of a custom resource as its definition has it", async (t) => {
  for (const definedGroup of ["gateway.networking.k8s.io", "gateway.networking.svc.io"])
    t.same(listedGroupNames({ group: "gateway.networking.svc.io", definedGroup }, served), [definedGroup]);
});
