import t from "tap";
import { configMapKind } from "../../../api/core/config-map/kind.ts";
import { rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { alwaysDeny } from "./always-deny.ts";

const map = { metadata: { name: "m" } };

t.test("alwaysDeny() rejects every request with the name of its object", async (t) => {
  const message = 'configmaps "m" is forbidden: admission control is denying all modifications';
  t.equal(await rejectionOf(runPlugin(alwaysDeny(), configMapKind, map)), message);
  const removal = { operation: "DELETE", oldObject: map } as const;
  t.equal(await rejectionOf(runPlugin(alwaysDeny(), configMapKind, undefined, removal)), message);
  const unnamed = { metadata: { generateName: "m-" } };
  t.match(await rejectionOf(runPlugin(alwaysDeny(), configMapKind, unnamed)), /^configmaps "m-" is forbidden/);
  t.match(await rejectionOf(runPlugin(alwaysDeny(), configMapKind, {})), /^configmaps "Unknown" is forbidden/);
});
