import t from "tap";
import { validateDomainPrefixedPath } from "./domain-prefixed-path.ts";

t.test("validateDomainPrefixedPath() reports the invalid part", async (t) => {
  const cases: readonly (readonly [text: string, badValue: string | undefined])[] = [
    ["acme.io/foo", undefined],
    ["acme.io/foo/bar:1", undefined],
    ["", ""],
    ["acme.io", "acme.io"],
    ["/foo", "/foo"],
    ["acme.io/", "acme.io/"],
    ["Acme/foo", "Acme"],
    ["acme.io/a b", "a b"],
  ];
  for (const [text, badValue] of cases) {
    t.equal(validateDomainPrefixedPath(text, "spec.controller")[0]?.badValue, badValue, text);
  }
});
