import t from "tap";
import { configMapKind } from "../../../api/core/config-map/kind.ts";
import { runPlugin, rejectionOf } from "../../../testing/admission/admission-fixture.ts";
import { alwaysAdmit, alwaysDeny } from "./always-deny.ts";

const map = { metadata: { name: "m" } };

t.test("alwaysDeny() refuses everything, alwaysAdmit() nothing", async (t) => {
  const why = 'configmaps "m" is forbidden: admission control is denying all modifications';
  t.equal(await rejectionOf(runPlugin(alwaysDeny(), configMapKind, map)), why);
  t.equal(await rejectionOf(runPlugin(alwaysDeny(), configMapKind, undefined, { operation: "DELETE", oldObject: map })), why);
  const unnamed = { metadata: { generateName: "m-" } };
  t.match(await rejectionOf(runPlugin(alwaysDeny(), configMapKind, unnamed)), /^configmaps "m-" is forbidden/);
  t.match(await rejectionOf(runPlugin(alwaysDeny(), configMapKind, {})), /^configmaps "Unknown!" is forbidden/);
  t.equal(await rejectionOf(runPlugin(alwaysAdmit(), configMapKind, map)), "");
});
