import t from "tap";
import { definitionOf } from "../testing/api/definition-fixture.ts";
import { createCustomKind } from "./apiextensions/custom-resource/kind.ts";
import { builtinScheme } from "./builtin.ts";

const schema = { openAPIV3Schema: { type: "object" } };
const widgets = "example.com/widgets";

t.test(
  "Scheme.setCustomVersions() replaces all versions of a resource, orders them by priority and increments changeCount",
  async (t) => {
    const scheme = builtinScheme();
    const own = scheme.kinds();
    const before = scheme.changeCount;
    const definition = definitionOf({ name: "v1beta1", schema }, { name: "v1", schema });
    scheme.setCustomVersions(widgets, [createCustomKind(definition, "v1beta1"), createCustomKind(definition, "v1")]);
    t.not(scheme.changeCount, before);
    t.same(
      scheme
        .kinds()
        .slice(own.length)
        .map(({ version }) => version),
      ["v1", "v1beta1"],
    );
    const next = createCustomKind(definition, "v1");
    scheme.setCustomVersions(widgets, [next]);
    t.equal(scheme.byResource("example.com", "v1", "widgets"), next);
    t.equal(scheme.byKind("example.com", "v1beta1", "Widget"), undefined);
    scheme.setCustomVersions(widgets, []);
    t.same(scheme.kinds(), own);
  },
);

t.test("Scheme.setCustomVersions() changes nothing when a name is taken", async (t) => {
  const scheme = builtinScheme();
  const kind = createCustomKind(definitionOf({ name: "v1", schema }), "v1");
  scheme.setCustomVersions(widgets, [kind]);
  const rival = { ...kind, plural: "rivals" };
  t.throws(() => scheme.setCustomVersions("example.com/rivals", [rival]), /twice/);
  t.equal(scheme.byKind("example.com", "v1", "Widget"), kind);
  t.equal(scheme.byResource("example.com", "v1", "rivals"), undefined);
});
