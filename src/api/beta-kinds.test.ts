import t from "tap";
import { betaKinds } from "./beta-kinds.ts";
import { builtinKinds } from "./builtin.ts";

t.test("betaKinds have the fields of version 1 and schema names of v1beta1", async (t) => {
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
      "no nested schema keeps the v1 name",
    );
  }
});
