import t from "tap";
import { configMapKind } from "../../../api/core/config-map/kind.ts";
import { rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { alwaysAdmit } from "./always-admit.ts";

t.test("alwaysAdmit() rejects no request", async (t) => {
  t.equal(await rejectionOf(runPlugin(alwaysAdmit(), configMapKind, { metadata: { name: "m" } })), "");
});
