import t from "tap";
import { credentialsIn, matching } from "./pull-secrets.ts";
import { parseImageReference } from "./reference.ts";

t.test("parseImageReference() finds the registry and fills in the tag", async (t) => {
  const cases = [
    ["busybox", "docker.io", "library/busybox", "busybox:latest"],
    ["busybox:1", "docker.io", "library/busybox", "busybox:1"],
    ["me/app", "docker.io", "me/app", "me/app:latest"],
    ["localhost/bb:1", "localhost", "bb", "localhost/bb:1"],
    ["localhost:5000/a/b", "localhost:5000", "a/b", "localhost:5000/a/b:latest"],
    [`r.example.org/x@sha256:${"a".repeat(64)}`, "r.example.org", "x", `r.example.org/x@sha256:${"a".repeat(64)}`],
  ] as const;
  for (const [text, registry, repository, withTag] of cases) {
    t.same(parseImageReference(text), { registry, repository, withTag }, text);
  }
});

t.test("parseImageReference() refuses what is no reference", async (t) => {
  for (const text of ["", "UPPER", "a b", "x@sha256:123", "x:", "/x", "x/", "a".repeat(3000)]) {
    t.equal(parseImageReference(text), undefined, text);
  }
});

t.test("credentialsIn() reads both formats, and matching() prefers the more specific entry", async (t) => {
  const auth = Buffer.from("u:p:w").toString("base64");
  const auths = {
    "r.example.org": { auth },
    "r.example.org/team": { username: "t", password: "q" },
    "*.test": { auth },
  };
  const all = credentialsIn({ ".dockerconfigjson": JSON.stringify({ auths }) });
  const find = (image: string) => matching(all, parseImageReference(image)!);
  t.same(find("r.example.org/team/x"), [
    { username: "t", password: "q" },
    { username: "u", password: "p:w" },
  ]);
  t.same(find("r.example.org/teams/x"), [{ username: "u", password: "p:w" }]);
  t.equal(find("a.test/x").length, 1);
  t.equal(find("a.b.test/x").length, 0);
  t.equal(find("busybox").length, 0);
  const legacy = credentialsIn({ ".dockercfg": JSON.stringify({ "https://index.docker.io/v1/": { auth } }) });
  t.equal(matching(legacy, parseImageReference("busybox")!).length, 1);
  t.throws(() => credentialsIn({ ".dockerconfigjson": "[]" }));
});
