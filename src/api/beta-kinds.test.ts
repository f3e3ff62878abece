import t from "tap";
import { betaKinds } from "./beta-kinds.ts";
import { builtinKinds } from "./builtin.ts";

t.test("betaKinds have all that their first versions have, under names of their own", async (t) => {
  for (const kind of betaKinds) {
    const stable = builtinKinds.find(({ group, plural }) => group === kind.group && plural === kind.plural)!;
    t.equal(kind.version, "v1beta1");
    t.equal(kind.storageName, stable.storageName, "the same objects");
    t.equal(kind.conversion?.storageKind, stable);
    t.equal(kind.schema.name, stable.schema.name.replace("/v1.", "/v1beta1."));
    t.same(Object.keys(kind.schema.fields), Object.keys(stable.schema.fields));
    t.notMatch(
      JSON.stringify(kind.schema),
      /"(networking|admissionregistration)\/v1\./,
      "no part keeps the other name",
    );
  }
});
