import t from "tap";
import { compareSemanticVersions, parseSemanticVersion } from "./semantic-version.ts";

t.test("parseSemanticVersion() accepts the versions of semver.org only", async (t) => {
  for (const text of ["0.0.0", "1.33.0", "1.33.0-alpha.1", "1.0.0-0A.is.legal", "1.33.0+build.7", "2.0.0-rc.1+b"]) {
    t.ok(parseSemanticVersion(text), text);
  }
  for (const text of [
    "",
    "1",
    "1.33",
    "v1.33.0",
    "01.0.0",
    "1.0.0-01",
    "1.0.0-",
    "1.0.0 ",
    "99999999999999999999.0.0",
  ]) {
    t.equal(parseSemanticVersion(text), undefined, text);
  }
});

t.test("compareSemanticVersions() orders as semver.org does", async (t) => {
  const ordered = ["1.0.0-1", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-rc.2", "1.0.0-rc.11", "1.0.0"];
  const versions = [...ordered, "1.0.1", "1.2.0", "1.10.0", "2.0.0"].map((text) => parseSemanticVersion(text)!);
  for (const [i, a] of versions.entries()) {
    for (const [j, b] of versions.entries()) {
      t.equal(Math.sign(compareSemanticVersions(a, b)), Math.sign(i - j), `${i} and ${j}`);
    }
  }
});
